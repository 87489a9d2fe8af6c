import type { Tx } from '../db/pool.ts'
import { must } from '../kernel/assert.ts'
import { seal } from '../kernel/seal.ts'
import { insertLineage, type Lineage, type Place, placeOf, selectLineage, updateLineageState } from './lineage-store.ts'
import { type StoredAccess, supersedeOthers, upsertPeriod, upsertTransaction } from './period-store.ts'
import type { Ms, StoreApp, VerifiedPeriod, VerifiedPurchase } from './types.ts'

/** The lineage of a verified purchase, locked, with what was verified written into it as far as that is not older. */
export async function applyState(
  tx: Tx,
  app: StoreApp,
  purchase: VerifiedPurchase,
  { sealingKey, now }: { sealingKey: Buffer; now: Ms },
): Promise<Lineage> {
  const place = placeOf(app, purchase)
  const lineage = await lockLineage(tx, place, purchase, now)
  for (const transaction of purchase.transactions) {
    const tokenSealed =
      transaction.token === null
        ? null
        : seal(sealingKey, tokenContext(place, transaction.evidenceKey), transaction.token)
    const { id, isNewest } = await upsertTransaction(tx, place, lineage, { ...transaction, tokenSealed, now })
    if (!isNewest) continue
    for (const period of transaction.periods) {
      await upsertPeriod(tx, lineage, id, { ...period, stored: storedAccess(period, now), now })
      if (isCurrentOfApple(purchase, period, now)) {
        await supersedeOthers(tx, lineage, { transactionId: id, at: period.startsAt })
      }
    }
  }
  if (purchase.version < lineage.version) return lineage
  await updateLineageState(tx, lineage, purchase)
  const { status, version, accountToken } = purchase
  return { ...lineage, status, version, accountToken: lineage.accountToken ?? accountToken }
}

/** What a sealed token is bound to. */
export function tokenContext({ scope, appId }: Pick<Place, 'scope' | 'appId'>, evidenceKey: string): string {
  return JSON.stringify(['purchase-token', appId, scope.projectId, scope.environment, evidenceKey])
}

/** Found by its first key or by any transaction of it; a second look when somebody else made it meanwhile. */
async function lockLineage(tx: Tx, place: Place, purchase: VerifiedPurchase, now: Ms): Promise<Lineage> {
  const evidenceKeys = [purchase.evidenceKey, ...purchase.linkedKeys]
  const look = () => selectLineage(tx, place, { rootKey: purchase.rootKey, evidenceKeys, lock: true })
  const found = (await look()) ?? (await insertLineage(tx, place, purchase, now)) ?? (await look())
  return must(found, 'a lineage is never deleted')
}

/** Access that is not, or no longer, there has an end that has passed. */
function storedAccess({ access, paidUntil, startsAt }: VerifiedPeriod, now: Ms): StoredAccess {
  const none = { revokedAt: null, revocation: null, supersededAt: null }
  if (access.kind === 'open') return { ...none, accessUntil: access.until }
  if (access.kind === 'superseded') return { ...none, accessUntil: paidUntil, supersededAt: access.at }
  if (access.revocation !== null) {
    const { at, reason, share, kind } = access.revocation
    return { ...none, accessUntil: paidUntil, revokedAt: at, revocation: { reason, share, kind } }
  }
  if (access.detail === 'revoked') return { ...none, accessUntil: paidUntil, revokedAt: now }
  return { ...none, accessUntil: Math.min(paidUntil ?? startsAt, now) }
}

/** One lineage of the App Store has one current period, whatever product it is for. */
function isCurrentOfApple({ store }: VerifiedPurchase, { type, access, startsAt }: VerifiedPeriod, now: Ms): boolean {
  return store === 'appstore' && type === 'subscription' && access.kind === 'open' && startsAt <= now
}
