import { storeLinksWalkedMax, storeVerdictMsMax } from '../../kernel/limits.ts'
import type { KnownLineage, Ms, StoreApp } from '../types.ts'
import { type Chain, type Link, tokenKeyOf, walkChain } from './chain.ts'
import { parsePurchase } from './parse.ts'
import type { PlayAccess, PlayAnswer, PlayApi, PlayKind } from './play-api.ts'
import type { PlayPurchase } from './purchase.ts'

/** What asking the store for a token came to. */
export type PlayRead =
  | { kind: 'read'; purchase: PlayPurchase; chain: Chain; readAt: Ms; now: Ms }
  | Exclude<PlayAnswer, { kind: 'ok' }>

export interface ReadOptions {
  access: PlayAccess
  token: string
  /** In this order; the next one only where the store does not know the token as the one before. */
  kinds: readonly PlayKind[]
  /** What is stored of a token. */
  known: (tokenKey: string) => Promise<KnownLineage | null>
  /** Takes the right to one call, or says no. */
  mayCall: () => Promise<boolean>
}

/** Reads a token from the store and walks to where its chain began: ten seconds in all, outside any transaction. */
export async function readToken(
  api: PlayApi,
  { clockOffsetMs }: Pick<StoreApp, 'clockOffsetMs'>,
  { access, token, kinds, known, mayCall }: ReadOptions,
): Promise<PlayRead> {
  const signal = AbortSignal.timeout(storeVerdictMsMax)

  async function ask(wanted: string, kind: PlayKind): Promise<PlayAnswer> {
    if (signal.aborted) return { kind: 'silent' }
    return (await mayCall()) ? api.read(access, kind, wanted, signal) : { kind: 'limited', retryAfterS: null }
  }

  async function readAny(): Promise<PlayRead | { kind: 'found'; purchase: PlayPurchase; readAt: Ms; now: Ms }> {
    let missed: PlayAnswer['kind'] | undefined
    for (const kind of kinds) {
      const answer = await ask(token, kind)
      if (answer.kind === 'ok') {
        const { body, sentAt: readAt } = answer
        const now = readAt + clockOffsetMs
        const purchase = parsePurchase(kind, body, now)
        return purchase === null ? { kind: 'silent' } : { kind: 'found', purchase, readAt, now }
      }
      if (answer.kind !== 'invalid' && answer.kind !== 'unknown') return answer
      missed = missed === 'unknown' ? missed : answer.kind
    }
    return { kind: missed === 'unknown' ? 'unknown' : 'invalid' }
  }

  async function look(linked: string): Promise<Link> {
    const stored = await known(tokenKeyOf(linked))
    if (stored) return { kind: 'stored', rootKey: stored.rootKey }
    const answer = await ask(linked, 'subscription')
    if (answer.kind === 'gone' || answer.kind === 'unknown' || answer.kind === 'invalid') return { kind: 'lost' }
    if (answer.kind !== 'ok') return { kind: 'unreadable' }
    const purchase = parsePurchase('subscription', answer.body, answer.sentAt)
    return purchase === null ? { kind: 'unreadable' } : { kind: 'read', linkedToken: purchase.linkedToken }
  }

  const found = await readAny()
  if (found.kind !== 'found') return found
  const { purchase } = found
  const chain = await walkChain(token, purchase.linkedToken, { linksMax: storeLinksWalkedMax, look })
  return chain === null ? { kind: 'silent' } : { ...found, kind: 'read', chain }
}
