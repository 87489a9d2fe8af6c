/**
 * A lane worker in a process of its own, for a test that stops it: `node paused-lane.ts <url> load|write`. It says `paused`
 * in the middle of its first slice and goes on when it is told to by a line.
 */
import { once } from 'node:events'
import { runTally, tally } from './tally.ts'

const [url = '', where] = process.argv.slice(2)
let paused = false

async function pause(at: string): Promise<void> {
  if (paused || at !== where) return
  paused = true
  process.stdout.write('paused\n')
  await once(process.stdin, 'data')
}

const lanes = runTally(url, {
  projection: {
    ...tally,
    async load(...args) {
      const state = await tally.load(...args)
      await pause('load')
      return state
    },
    async write(...args) {
      await tally.write(...args)
      await pause('write')
    },
  },
})
await once(process, 'SIGTERM')
await lanes[Symbol.asyncDispose]()
process.exit(0)
