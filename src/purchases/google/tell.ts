import { storeVerdictMsMax } from '../../kernel/limits.ts'
import type { OutboxRow } from '../outbox/outbox-store.ts'
import type { Told } from '../outbox/pump.ts'
import type { Quota } from '../quota.ts'
import type { StoreApp } from '../types.ts'
import { allowedOf, playAccess } from './access.ts'
import { parsePurchase } from './parse.ts'
import type { PlayAccess, PlayAnswer, PlayApi, PlayKind } from './play-api.ts'
import type { PlayPurchase } from './purchase.ts'

export interface PlayTellParts {
  api: PlayApi
  quota: Quota
}

/**
 * Acknowledges or consumes one purchase. A refusal may mean that it is done already, by us before a crash or by the app: the
 * purchase itself says so.
 */
export async function tellPlay(
  { api, quota }: PlayTellParts,
  app: StoreApp,
  { kind, payload }: Pick<OutboxRow, 'kind' | 'payload'>,
  token: string,
): Promise<Told> {
  const access = playAccess(app)
  if (access === null) return { kind: 'again', error: 'not_configured' }
  // A purchase that is not acknowledged in time is taken back: nothing is more urgent.
  if (!(await quota.take(allowedOf(access), 'client'))) return { kind: 'again', error: 'rate_limited' }
  const signal = AbortSignal.timeout(storeVerdictMsMax)
  const bought: PlayKind = payload.kind === 'one_time' ? 'one_time' : 'subscription'
  const { productId } = payload
  if (typeof productId !== 'string') return { kind: 'given_up', error: 'nothing to tell' }
  const sold = { productId, token }
  const answer =
    kind === 'consume' ? await api.consume(access, sold, signal) : await api.acknowledge(access, bought, sold, signal)
  switch (answer.kind) {
    case 'ok':
      return { kind: 'done' }
    case 'limited':
      return { kind: 'again', error: 'rate_limited', ...(answer.retryAfterS && { afterMs: answer.retryAfterS * 1000 }) }
    case 'silent':
    case 'refused':
      return { kind: 'again', error: answer.kind }
    case 'gone':
    case 'invalid':
    case 'unknown':
      return refusedFor(await look(api, access, bought, token, signal), kind)
  }
}

async function look(
  api: PlayApi,
  access: PlayAccess,
  kind: PlayKind,
  token: string,
  signal: AbortSignal,
): Promise<PlayPurchase | PlayAnswer['kind']> {
  const answer = await api.read(access, kind, token, signal)
  if (answer.kind !== 'ok') return answer.kind
  return parsePurchase(kind, answer.body, answer.sentAt) ?? 'silent'
}

function refusedFor(found: PlayPurchase | PlayAnswer['kind'], kind: OutboxRow['kind']): Told {
  if (found === 'gone' || found === 'unknown' || found === 'invalid')
    return { kind: 'given_up', error: `store: ${found}` }
  if (typeof found === 'string') return { kind: 'again', error: `store: ${found}` }
  const isDone = kind === 'consume' ? found.items.every(({ isConsumed }) => isConsumed) : found.isAcknowledged
  if (isDone) return { kind: 'done' }
  const isOver = found.items.every(({ standing }) => standing.kind === 'none')
  return isOver ? { kind: 'given_up', error: `purchase: ${found.status}` } : { kind: 'again', error: 'refused' }
}
