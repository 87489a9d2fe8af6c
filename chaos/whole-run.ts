import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import test, { after } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { isAlive } from '../src/db/embedded/process.ts'
import { must } from '../src/kernel/assert.ts'
import { temporaryFolder } from '../test/harness/server.ts'
import { postgresOf } from '../test/harness/turnpike.ts'

const folder = await temporaryFolder()
after(() => rmSync(folder, { recursive: true }))

function run(...args: string[]): { child: ChildProcess; out: () => string; ended: Promise<unknown[]> } {
  const child = spawn(process.execPath, [join(import.meta.dirname, 'run.ts'), ...args], {
    env: { ...process.env, TEST_FOLDER: folder },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let said = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    said += text
  })
  return { child, out: () => said, ended: once(child, 'close') }
}

test('a short run with processes killed, paused and cut off passes, says so in its last line and leaves nothing', async () => {
  const { out, ended } = run('--minutes', '0.3', '--seed', 'short-103')
  const [code] = await ended
  assert.equal(code, 0, out())
  const last = must(out().trim().split('\n').at(-1), 'it has said something')
  const found = /^chaos: PASS kills=(\d+) acked=(\d+) lost=0 doubled=0 unlisted=0 seed=short-103$/.exec(last)
  assert.ok(Number(found?.[1]) >= 2 && Number(found?.[2]) > 0, last)
  assert.deepEqual(readdirSync(folder), [])
})

test('Ctrl-C in the middle of it ends every process and removes everything', async () => {
  const { child, out, ended } = run('--seed', 'interrupted-29')
  while (!/ s {2}/.test(out())) await sleep(20)
  const [place = ''] = readdirSync(folder)
  // PostgreSQL stands still by then.
  const { processId } = await postgresOf(join(folder, place, 'data'))
  child.kill('SIGINT')
  assert.deepEqual(await ended, [130, null])
  assert.ok(!isAlive(processId))
  assert.deepEqual(readdirSync(folder), [])
})

test('what it does not understand it refuses with how it is called', async () => {
  const child = spawn(process.execPath, [join(import.meta.dirname, 'run.ts'), '--minutes', 'many'])
  let said = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    said += text
  })
  const [code] = await once(child, 'close')
  assert.equal(code, 1)
  assert.match(said, /--minutes is a number[\s\S]*npm run chaos/)
})
