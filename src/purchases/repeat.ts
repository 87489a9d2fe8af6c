import { setTimeout as sleep } from 'node:timers/promises'

export interface Repeated extends AsyncDisposable {
  /** Looks at once, instead of after the pause. */
  wake: () => void
}

export interface RepeatOptions {
  /** Gives how much there was to do: as long as there is something, it is called again at once. Ends early when `stop` does. */
  work: (stop: AbortSignal) => Promise<number>
  pauseMs: number
  onError: (error: unknown) => void
}

/** Works until it is disposed, which waits for what is under way. */
export function repeat({ work, pauseMs, onError }: RepeatOptions): Repeated {
  const stop = new AbortController()
  let early = new AbortController()

  async function run(): Promise<void> {
    while (!stop.signal.aborted) {
      const done = await work(stop.signal).catch((error: unknown) => {
        onError(error)
        return 0
      })
      if (done === 0) await pause()
    }
  }

  async function pause(): Promise<void> {
    early = new AbortController()
    await sleep(pauseMs, undefined, { signal: AbortSignal.any([stop.signal, early.signal]) }).catch(() => {})
  }

  const running = run()
  return {
    wake: () => early.abort(),
    async [Symbol.asyncDispose]() {
      stop.abort()
      await running
    },
  }
}

/** Before another try: a second, then twice as long each time. */
export function backoffMs(attempts: number, most: number): number {
  return Math.min(1000 * 2 ** (attempts - 1), most)
}
