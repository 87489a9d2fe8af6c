import { setFlagsFromString } from 'node:v8'
import type pino from 'pino'
import { readConfig } from '../config.ts'
import { isRetryable } from '../db/pool.ts'
import { stopMsMax } from '../kernel/limits.ts'
import { StartError } from '../kernel/start-error.ts'
import { openLog } from '../log.ts'
import { summaryOf } from '../setup.ts'
import { start } from '../start.ts'

/** `start`: runs until it is told to stop. */
export async function serve(): Promise<void> {
  collectLater()
  const config = readConfig()
  const log = openLog({ level: config.logLevel })
  const stop = stopSignal(log)
  const stopping = new Promise((resolve) => stop.addEventListener('abort', resolve))
  const service = await start(config, log, stop).catch((error: unknown) => {
    if (stop.aborted) return
    // It was there when the start began: whoever watches over the process tries again.
    throw isRetryable(error) ? new StartError(`the database went away during the start: ${wordsOf(error)}`) : error
  })
  if (service?.firstRun) process.stdout.write(summaryOf(service.firstRun, config))
  if (service) log.info(`listening on ${service.url}`)
  await stopping
  await service?.[Symbol.asyncDispose]()
  log.info('stopped')
}

/**
 * Old objects are marked once three fifths of what may be added to them have been. By itself V8 begins as soon as less is
 * left than young objects could fill, and on a machine with memory those may fill more than that from the first: under load
 * it marked 45 MB three times a second. The limit itself stays what it was. One event cost 36 us in Node instead of 44.
 */
function collectLater(): void {
  setFlagsFromString('--incremental-marking-soft-trigger=60')
  setFlagsFromString('--incremental-marking-hard-trigger=90')
}

function wordsOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

/** Aborted by the first signal to stop. Later ones are heard and change nothing: npm repeats a Ctrl-C that has reached us too. */
function stopSignal(log: pino.Logger): AbortSignal {
  const stop = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.on(signal, () => {
      if (stop.signal.aborted) return
      log.info(`${signal}: stopping`)
      stop.abort()
      setTimeout(() => {
        log.warn('not everything stopped in time')
        process.exit(0)
      }, stopMsMax).unref()
    })
  }
  return stop.signal
}
