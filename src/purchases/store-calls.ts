import { LRUCache } from 'lru-cache'
import type { Clock } from '../kernel/clock.ts'
import { bearersKeptMax, credentialNoteMs } from '../kernel/limits.ts'
import type { Scope } from '../tenancy/index.ts'
import { type Circuit, closed, enter, leave } from './circuit.ts'
import type { Ms, Store } from './types.ts'

/** Whom a call asks, and by whose credential. */
export interface StoreLine {
  scope: Scope
  appId: string
  store: Store
  /** Where it goes; only its host is told to anybody. */
  url: string
}

/** Nobody was asked: the store did not answer lately. */
export interface Resting {
  kind: 'resting'
  retryAfterS: number
}

/** What a store's answer was reduced to. `status` of silence: it answered, with nothing that we can use. */
interface Reduced {
  kind: string
  status?: number
}

export interface OpenCircuits {
  store: Store
  host: string
  count: number
}

export interface StoreCalls {
  /** Asks, unless the circuit of this credential at this host is open. */
  through: <T extends Reduced>(line: StoreLine, signal: AbortSignal, ask: () => Promise<T>) => Promise<T | Resting>
  /** Of this process: every host that was asked lately. */
  openCircuits: () => OpenCircuits[]
}

/** How the use of a credential went; text says what is wrong. */
export type NoteUse = (line: StoreLine, error: string | null) => void

/**
 * The one way to the stores. A store that is down costs its first callers their time and nobody else's: a credential's calls to
 * a host rest after failures in a row. It decides nothing: whoever is not let through has no answer, and may ask again.
 */
export function createStoreCalls(clock: Clock, note: NoteUse = () => {}): StoreCalls {
  const circuits = new LRUCache<string, Circuit>({ max: bearersKeptMax })
  const noted = new LRUCache<string, { error: string | null; at: Ms }>({ max: bearersKeptMax })

  function noteOnce(line: StoreLine, key: string, error: string | null | undefined): void {
    const last = noted.get(key)
    const now = clock.now()
    if (error === undefined || (last?.error === error && now - last.at < credentialNoteMs)) return
    noted.set(key, { error, at: now })
    note(line, error)
  }

  return {
    async through(line, signal, ask) {
      const host = hostOf(line.url)
      const key = JSON.stringify([line.store, host, line.scope.scopeId, line.appId])
      const { restMs, circuit } = enter(circuits.get(key) ?? closed, clock.now())
      if (restMs > 0) return { kind: 'resting', retryAfterS: Math.ceil(restMs / 1000) }
      circuits.set(key, circuit)
      let how: Parameters<typeof leave>[1] = 'unknown'
      let words: string | null | undefined
      try {
        const answer = await ask()
        if (!isFailure(answer)) how = 'answered'
        else if (!signal.aborted) how = 'failed'
        words = how === 'unknown' ? undefined : wordsOf(line.store, answer)
        return answer
      } finally {
        const left = leave(circuits.get(key) ?? closed, how, clock.now())
        circuits.set(key, left)
        noteOnce(line, key, how === 'failed' && left.kind === 'open' ? `${words} ${restWords}` : words)
      }
    },
    openCircuits() {
      const counts = new Map<string, OpenCircuits>()
      for (const [key, { kind }] of circuits.entries()) {
        const [store, host] = JSON.parse(key) as [Store, string] // as `through` made it
        const name = `${store} ${host}`
        const before = counts.get(name)?.count ?? 0
        counts.set(name, { store, host, count: before + (kind === 'closed' ? 0 : 1) })
      }
      return [...counts.values()]
    },
  }
}

function hostOf(url: string): string {
  return URL.canParse(url) ? new URL(url).host : ''
}

function isFailure({ kind, status }: Reduced): boolean {
  return kind === 'silent' && (status === undefined || status >= 500)
}

const restWords = 'Calls rest, and are tried again within a minute.'
const names = { appstore: 'The App Store', playstore: 'Google Play', stripe: 'Stripe' } as const

/** Undefined: it says nothing of the credential. */
function wordsOf(store: Store, answer: Reduced): string | null | undefined {
  if (answer.kind === 'refused') return `${names[store]} does not take the key.`
  if (isFailure(answer)) return `${names[store]} does not answer.`
  return answer.kind === 'silent' || answer.kind === 'limited' ? undefined : null
}
