import type { Tx } from '../db/pool.ts'
import { selectLedgerClock } from '../entitlements/index.ts'
import { must } from '../kernel/assert.ts'
import { storeUnreadMsMax } from '../kernel/limits.ts'
import { seal } from '../kernel/seal.ts'
import { applyPeriods } from './apply-periods.ts'
import { lockToken } from './claim-store.ts'
import { insertLineage, type Lineage, type Place, placeOf, selectLineage, updateLineageState } from './lineage-store.ts'
import { upsertTransaction } from './period-store.ts'
import { withoutPersonal } from './personal-claims.ts'
import { carryPeriods, supersedePeriods, supersedeTransaction } from './supersede-store.ts'
import type { Ms, StoreApp, VerifiedPurchase, VerifiedTransaction } from './types.ts'

interface Written {
  transaction: VerifiedTransaction
  id: bigint
  isNewest: boolean
  isSuperseded: boolean
}

/**
 * The lineage of a verified purchase, locked, with what was verified written into it as far as that is not older; and the instant
 * at which it was, for all that follows. It is not before the lock: by an earlier one, what somebody else has ended while we
 * waited would not be over yet.
 */
export async function applyState(
  tx: Tx,
  app: StoreApp,
  purchase: VerifiedPurchase,
  { sealingKey }: { sealingKey: Buffer },
): Promise<{ lineage: Lineage; now: Ms }> {
  const place = placeOf(app, purchase)
  const lineage = await lockLineage(tx, place, purchase, await selectLedgerClock(tx, app.scope))
  const now = await selectLedgerClock(tx, app.scope)
  const written: Written[] = []
  for (const transaction of purchase.transactions) {
    const tokenSealed =
      transaction.token === null
        ? null
        : seal(sealingKey, tokenContext(place, transaction.evidenceKey), transaction.token)
    written.push({
      transaction,
      ...(await upsertTransaction(tx, place, lineage, {
        ...transaction,
        claims: lineage.ownerDeleted ? withoutPersonal(transaction.claims) : transaction.claims,
        tokenSealed,
        now,
      })),
    })
  }
  await supersede(tx, lineage, purchase, written, now)
  for (const each of written) await applyPeriods(tx, lineage, purchase, { ...each, now })

  const own = written.find(({ transaction }) => transaction.evidenceKey === purchase.evidenceKey)
  // What another purchase took the place of says nothing of the whole any more.
  if (purchase.version < lineage.version || own?.isSuperseded) return { lineage, now }
  const extra = lineage.ownerDeleted && purchase.extra !== null ? withoutPersonal(purchase.extra) : purchase.extra
  await updateLineageState(tx, lineage, { ...purchase, extra, nextCheckAt: nextCheckOf(purchase, now) })
  const { status, version, accountToken } = purchase
  return { lineage: { ...lineage, status, version, accountToken: lineage.accountToken ?? accountToken }, now }
}

/** Nothing that still gives something stays unread for longer than a week, whatever was told of it. */
function nextCheckOf({ nextCheckAt, status, unpolled }: VerifiedPurchase, now: Ms): Ms | null {
  if (unpolled || (nextCheckAt === null && status !== 'active')) return nextCheckAt
  return Math.min(nextCheckAt ?? Number.POSITIVE_INFINITY, now + storeUnreadMsMax)
}

/** What a sealed token is bound to. */
export function tokenContext({ scope, appId }: Pick<Place, 'scope' | 'appId'>, evidenceKey: string): string {
  return JSON.stringify(['purchase-token', appId, scope.projectId, scope.environment, evidenceKey])
}

/** Found by its first key or by any transaction of it; a second look when somebody else made it meanwhile. */
async function lockLineage(tx: Tx, place: Place, purchase: VerifiedPurchase, now: Ms): Promise<Lineage> {
  const evidenceKeys = [purchase.evidenceKey, ...purchase.linkedKeys]
  const look = () => selectLineage(tx, place, { rootKey: purchase.rootKey, evidenceKeys, lock: true })
  const known = await look()
  if (known) return known
  const { appId, store, scope } = place
  if (purchase.accountToken !== null) await lockToken(tx, scope, { appId, store, value: purchase.accountToken })
  return must((await insertLineage(tx, place, purchase, now)) ?? (await look()), 'a lineage is never deleted')
}

/**
 * Tokens whose place another one took never come back, whichever of the two was read last. What they had paid for and the new
 * one still has goes over to it; the rest ends now. Time that was paid ahead runs on.
 */
async function supersede(
  tx: Tx,
  lineage: Lineage,
  { evidenceKey, transactions }: VerifiedPurchase,
  written: Written[],
  now: Ms,
): Promise<void> {
  const replaced = written.filter(({ transaction }) => transaction.supersededBy !== null)
  if (replaced.length === 0) return
  const own = must(
    written.find(({ transaction }) => transaction.evidenceKey === evidenceKey),
    'the purchase itself is one of them',
  )
  const replacedIds = replaced.map(({ id }) => id)
  for (const each of replaced) {
    await supersedeTransaction(tx, each.id, must(each.transaction.supersededBy ?? undefined, 'these have one'))
    each.isSuperseded = true
  }
  if (own.isSuperseded) return
  const periods = transactions.find((each) => each.evidenceKey === evidenceKey)?.periods ?? []
  const orders = periods.flatMap(({ orderId }) => orderId ?? [])
  await carryPeriods(tx, lineage, { from: replacedIds, to: own.id, orders })
  const paidAhead = periods.filter(({ prepaid }) => prepaid === true).map(({ line }) => line)
  await supersedePeriods(tx, lineage, { transactionIds: replacedIds, except: paidAhead, at: now })
}
