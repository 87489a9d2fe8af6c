import { once } from 'node:events'
import { isMainThread, Worker } from 'node:worker_threads'
import type { Logger } from 'pino'
import { runLaneWorker, type WorkerInput } from './lane-worker.ts'
import type { InstanceSecrets } from './tenancy/index.ts'

const restartMs = 1000
/** A slice that takes longer is rolled back, and taken by the next worker. */
const stopMsMax = 2000

/** Runs the lane worker in a thread of its own, so that it shares no event loop with the API; a crashed one starts again. */
export function startWorker({ url, secrets }: { url: string; secrets: InstanceSecrets }, log: Logger): AsyncDisposable {
  const input: WorkerInput = { url, tombstoneKey: secrets.tombstoneKey, logLevel: log.level }
  let stopping = false
  let thread = launch()

  function launch(): Worker {
    const worker = new Worker(new URL(import.meta.url), { workerData: input })
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
