import { once } from 'node:events'
import { parentPort, workerData } from 'node:worker_threads'
import pino from 'pino'
import { createProjection } from './customers/index.ts'
import { mergeAccounts } from './entitlements/index.ts'
import { type Consumer, runLanes } from './events/index.ts'
import { must } from './kernel/assert.ts'
import { systemClock as clock } from './kernel/clock.ts'

/** What the worker is started with: structured-clonable. */
export interface WorkerInput {
  url: string
  tombstoneKey: Uint8Array
  logLevel: string
}

/** The lane worker, in its own thread: one projection and the consumers in the order they see each slice. */
export async function runLaneWorker(): Promise<void> {
  const { url, tombstoneKey, logLevel } = workerData as WorkerInput // given by worker.ts
  const parent = must(parentPort, 'the worker runs in a thread')
  const stop = new AbortController()
  const log = pino({ level: logLevel, name: 'worker' })
  const projection = createProjection({ tombstoneKey: Buffer.from(tombstoneKey), onMerge: mergeAccounts })
  const consumers: Consumer[] = []

  const running = runLanes({ url, projection, consumers, clock, log, signal: stop.signal })
  await once(parent, 'message')
  stop.abort()
  await running
  parent.close()
}
