import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { must } from '../src/kernel/assert.ts'
import { type Processes, readProcesses } from './cpu.ts'
import type { GeneratorLine, Job, Outcome } from './job.ts'

/** What one round of one server was seen to do. */
export interface Measured {
  outcome: Outcome
  /** All processes when sending began, and at the two ends of the measured window. */
  atStart: Processes
  before: Processes
  after: Processes
  /** Milliseconds of the process clock when sending began and ended. */
  startedAt: number
  endedAt: number
}

/** Runs one job in a generator process of its own. Each of `meanwhile` is called over and over while it sends. */
export async function measure(job: Job, meanwhile: readonly (() => Promise<void>)[] = []): Promise<Measured> {
  const child = spawn(process.execPath, [fileURLToPath(new URL('./load.ts', import.meta.url))], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const ended = once(child, 'exit')
  child.stdin.end(JSON.stringify(job))
  const seen: Partial<Measured> = {}
  let sending = false
  let watching: Promise<unknown> | undefined
  for await (const text of createInterface(child.stdout)) {
    const line = JSON.parse(text) as GeneratorLine // written by load.ts
    switch (line.phase) {
      case 'ready':
        seen.atStart = readProcesses()
        seen.startedAt = performance.now()
        sending = true
        watching = Promise.all(meanwhile.map((look) => watch(look, () => sending)))
        // Awaited below; until then its failure is not an unhandled one.
        watching.catch(() => {})
        break
      case 'measuring':
        seen.before = readProcesses()
        break
      case 'measured':
        seen.after = readProcesses()
        sending = false
        break
      case 'done':
        seen.outcome = line.outcome
        seen.endedAt = performance.now()
        break
    }
  }
  sending = false
  await watching
  await ended
  const { outcome, atStart, before = seen.after, after, startedAt = 0, endedAt = 0 } = seen
  if (!outcome) throw new Error('the generator failed; its words are above')
  return {
    outcome,
    atStart: must(atStart, 'the generator started'),
    before: must(before, 'the generator measured'),
    after: must(after, 'the generator measured'),
    startedAt,
    endedAt,
  }
}

async function watch(look: () => Promise<void>, on: () => boolean): Promise<void> {
  while (on()) await look()
}
