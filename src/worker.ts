import { once } from 'node:events'
import { isMainThread, Worker } from 'node:worker_threads'
import type { Logger } from 'pino'
import type { Config } from './config.ts'
import type { LaneStats } from './events/index.ts'
import { runLaneWorker, type WorkerInput } from './lane-worker.ts'
import { type InstanceSecrets, sealingKeyOf } from './tenancy/index.ts'

const restartMs = 1000
/** A slice that takes longer is rolled back, and taken by the next worker. */
const stopMsMax = 2000

export interface LaneWorker extends AsyncDisposable {
  /** Of the thread that runs now, at most a second old; undefined before it first told. */
  stats: () => LaneStats | undefined
}

/** Runs the lane worker in a thread of its own, so that it shares no event loop with the API; a crashed one starts again. */
export function startWorker(
  { url, secrets, config }: { url: string; secrets: InstanceSecrets; config: Config },
  log: Logger,
): LaneWorker {
  const { eventRetentionDays, publicUrl, webhooksToPrivate } = config
  const input: WorkerInput = {
    ...{ url, tombstoneKey: secrets.tombstoneKey, sealingKey: sealingKeyOf(secrets), logLevel: log.level },
    ...{ eventRetentionDays, publicUrl, webhooksToPrivate },
  }
  let stopping = false
  let stats: LaneStats | undefined
  let thread = launch()

  function launch(): Worker {
    const worker = new Worker(new URL(import.meta.url), { workerData: input })
    worker.on('message', (told: LaneStats) => {
      stats = told
    })
    worker.on('error', (error) => log.error({ err: error }, 'the lane worker crashed'))
    worker.on('exit', () => {
      if (stopping) return
      setTimeout(() => {
        if (!stopping) thread = launch()
      }, restartMs).unref()
    })
    return worker
  }

  return {
    stats: () => stats,
    async [Symbol.asyncDispose]() {
      stopping = true
      if (thread.threadId === -1) return
      const exited = once(thread, 'exit')
      thread.postMessage('stop')
      const giveUp = setTimeout(() => void thread.terminate(), stopMsMax)
      await exited
      clearTimeout(giveUp)
    },
  }
}

if (!isMainThread) await runLaneWorker()
