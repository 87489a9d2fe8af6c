import { dayMs, storeVerdictMsMax, voidedListEveryMs, voidedPagesMax } from '../../kernel/limits.ts'
import { allowedOf, playAccess } from '../google/access.ts'
import { tokenKeyOf } from '../google/chain.ts'
import { countOr, list, object, text, textOrNull, Unreadable } from '../google/fields.ts'
import type { PlayAnswer, PlayApi } from '../google/play-api.ts'
import { isHeld } from '../lifecycle-store.ts'
import { followPlay, type PlayLifecycle } from '../notifications/process-play.ts'
import type { Quota } from '../quota.ts'
import type { StoreApp } from '../types.ts'
import { type DueList, deleteList, insertMissingLists, moveList, takeDueLists } from './voided-store.ts'

export interface VoidedParts extends PlayLifecycle {
  appOf: (scopeId: number, appId: string) => Promise<StoreApp | null>
  api: PlayApi
  quota: Quota
}

/** Google keeps the list for 30 days, and some entries come late. */
const reachMs = 29 * dayMs
const overlapMs = dayMs
const leaseMs = 10 * 60_000
const retryMs = 15 * 60_000

/**
 * Reads what Google Play refunded, revoked or charged back since the last time, each day with a day of overlap: whoever lost
 * the notification finds it here. Gives how many lists were looked at.
 */
export async function readVoidedLists(parts: VoidedParts): Promise<number> {
  const { pool, clock } = parts.services
  await insertMissingLists(pool, clock.now() - reachMs)
  const due = await takeDueLists(pool, { max: 4, leaseMs })
  for (const one of due) await readList(parts, one)
  return due.length
}

async function readList(parts: VoidedParts, due: DueList): Promise<void> {
  const { services } = parts
  const app = await parts.appOf(due.scope_id, due.app_id)
  const access = app && playAccess(app)
  if (!app || !access) return deleteList(services.pool, due)
  const now = services.clock.now() + app.clockOffsetMs
  const startMs = Math.max(Number(due.read_until_ms) - overlapMs, now - reachMs)
  let isWhole = true
  let pageToken: string | null = null
  for (let page = 0; page < voidedPagesMax; page++) {
    if (!(await parts.quota.take(allowedOf(access), 'background'))) isWhole = false
    const answer: PlayAnswer | false =
      isWhole && (await parts.api.voided(access, { startMs, pageToken }, AbortSignal.timeout(storeVerdictMsMax)))
    const found: Page | null = answer && answer.kind === 'ok' ? readPage(answer.body) : null
    if (found === null) {
      isWhole = false
      break
    }
    for (const entry of found.entries) isWhole = (await follow(parts, app, entry)) && isWhole
    pageToken = found.nextPageToken
    if (pageToken === null) break
  }
  await moveList(services.pool, due, {
    ...(isWhole ? { readUntilMs: now, dueAtMs: now + voidedListEveryMs } : { readUntilMs: 0, dueAtMs: now + retryMs }),
  })
}

interface Page {
  entries: Entry[]
  nextPageToken: string | null
}

interface Entry {
  token: string
  orderId: string | null
  at: number
  isWhole: boolean
}

/** A purchase that we hold nothing of is judged when somebody brings it: the store itself says that it was voided. */
async function follow(parts: VoidedParts, app: StoreApp, { token, orderId, at, isWhole }: Entry): Promise<boolean> {
  if (!(await isHeld(parts.services.pool, app, 'playstore', tokenKeyOf(token)))) return true
  const voided = orderId !== null && isWhole ? { orderId, at } : null
  const processed = await followPlay(parts, [app], { token, bought: null, voided })
  return processed.kind !== 'again'
}

function readPage(body: unknown): Page | null {
  try {
    const answer = object(body)
    const { nextPageToken } = object(answer.tokenPagination ?? {})
    const entries = list(answer.voidedPurchases ?? []).map(object)
    return {
      nextPageToken: textOrNull(nextPageToken),
      entries: entries.map(({ purchaseToken, orderId, voidedTimeMillis, voidedQuantity }) => ({
        token: text(purchaseToken),
        orderId: textOrNull(orderId),
        at: Number(text(voidedTimeMillis)) || 0,
        isWhole: countOr(voidedQuantity, 0) === 0,
      })),
    }
  } catch (error) {
    if (error instanceof Unreadable) return null
    throw error
  }
}
