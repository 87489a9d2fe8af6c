import type { MappedProduct, PeriodAccess, StoreApp, Verdict, VerifiedTransaction, VerifyContext } from '../types.ts'
import { accountTokenIn, type TransactionClaims } from './claims.ts'
import type { Fresh } from './fresh.ts'
import { type Genuine, invalid, storeProductOf } from './genuine.ts'
import { type Judged, judge, quantityOf, whole } from './judge.ts'

const checkAfterMs = 5 * 60_000
const retryCheckMs = 3600_000

/** What we believe of a lineage, from the transaction that was brought and, where it was read, the newest one. */
export async function purchaseOf(
  app: StoreApp,
  { transaction, storeEnvironment, idPrefix, signer }: Genuine,
  fresh: Fresh | null,
  context: Pick<VerifyContext, 'now' | 'productFor'>,
): Promise<Verdict> {
  const { now } = context
  const newest = fresh?.kind === 'read' ? fresh.newest : transaction
  const renewal = fresh?.kind === 'read' ? fresh.renewal : null
  const isNewest = newest.transactionId === transaction.transactionId
  const mapped = await context.productFor(storeProductOf(newest))
  if (!mapped) return invalid('the newest product leads to no Product')
  const judged = judge(newest, { link: mapped.link, renewal, now })
  const newestSigner = fresh?.kind === 'read' ? fresh.signer : signer
  const shown = showTransaction(newest, { idPrefix, signer: newestSigner, mapped, judged, access: judged.access })
  const transactions = [shown]
  if (!isNewest) {
    const own = await context.productFor(storeProductOf(transaction))
    if (!own) return invalid('the product leads to no Product')
    const before = judge(transaction, { link: own.link, renewal: null, now })
    transactions.unshift(
      showTransaction(transaction, {
        ...{ idPrefix, signer, mapped: own, judged: before },
        // One subscription has one current period: whatever was not over yet ended with the newer one.
        access: before.access.kind === 'open' ? { kind: 'superseded', at: whole(newest.purchaseDate) } : before.access,
      }),
    )
  }

  const info = renewal?.info ?? null
  const next = typeof info?.autoRenewProductId === 'string' ? info.autoRenewProductId : null
  return {
    kind: 'verified',
    purchase: {
      store: 'appstore',
      storeEnvironment,
      evidenceKey: idPrefix + transaction.transactionId,
      rootKey: idPrefix + transaction.originalTransactionId,
      linkedKeys: [],
      purchasedAt: whole(transaction.purchaseDate),
      version: whole(Math.max(newest.signedDate, typeof info?.signedDate === 'number' ? info.signedDate : 0)),
      readAt: fresh?.kind === 'read' ? fresh.readAt : null,
      unpolled: !app.credentials.appstore?.api || fresh?.kind === 'unpolled',
      accountToken: accountTokenIn(transaction),
      renewalAccountToken: accountTokenIn(newest) ?? accountTokenIn(info),
      familyShared: transaction.inAppOwnershipType === 'FAMILY_SHARED',
      status: judged.status,
      autoRenews: info === null ? null : info.autoRenewStatus === 1,
      pendingProduct: next !== null && next !== newest.productId ? next : null,
      nextCheckAt: nextCheck(app, judged, now),
      transactions,
      consumedElsewhere: false,
      outbox: [],
      result: { transactionId: transaction.transactionId },
      extra: info,
    },
  }
}

function showTransaction(
  claims: TransactionClaims,
  {
    idPrefix,
    signer,
    mapped,
    judged,
    access,
  }: { idPrefix: string; signer: string | null; mapped: MappedProduct; judged: Judged; access: PeriodAccess },
): VerifiedTransaction {
  return {
    evidenceKey: idPrefix + claims.transactionId,
    version: whole(claims.signedDate),
    token: null,
    supersededBy: null,
    claims,
    signer,
    periods: [
      {
        ...storeProductOf(claims),
        line: '',
        key: idPrefix + claims.transactionId,
        type: judged.type,
        consumable: judged.consumable,
        mapped,
        quantity: quantityOf(claims),
        orderId: typeof claims.webOrderLineItemId === 'string' ? claims.webOrderLineItemId : null,
        startsAt: whole(claims.purchaseDate),
        paidUntil: judged.paidUntil,
        access,
      },
    ],
  }
}

function nextCheck(app: StoreApp, { access, status }: Judged, now: number): number | null {
  if (!app.credentials.appstore?.api) return null
  if (access.kind === 'open') return access.until === null ? null : access.until + checkAfterMs
  return status === 'billing_retry' ? now + retryCheckMs : null
}
