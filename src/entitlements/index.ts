export { type Catalogue, Catalogues } from './catalogue/catalogue.ts'
export { costText } from './catalogue/credit-costs.ts'
export { decimalText } from './catalogue/decimals.ts'
export {
  archiveFeature,
  createFeature,
  type Edit,
  getFeature,
  listFeatures,
  publishedFeatures,
  publishFeature,
  updateFeature,
} from './catalogue/features.ts'
export { intervals } from './catalogue/grant-terms.ts'
export {
  archiveProduct,
  createProduct,
  findLinkedProduct,
  findProducts,
  getProduct,
  listProducts,
  updateProduct,
} from './catalogue/products.ts'
export type {
  FeatureRecord,
  GrantTemplate,
  ProductRecord,
  StoreLink,
} from './catalogue/types.ts'
export type { Finding } from './engine/audit-rows.ts'
export type { Balance, BalanceGrant } from './engine/balance.ts'
export { type ActiveFeature, activeFeatures } from './engine/view.ts'
export { attachProduct, attachPurchase } from './ledger/attach-product.ts'
export { type BalanceQuery, type BalanceServices, createBalances } from './ledger/balances.ts'
export { type AccessAnswer, type AccessQuery, createCheck } from './ledger/check.ts'
export { createConsume } from './ledger/consume.ts'
export { type EntityRecord, listEntities, registerEntity, retireEntity } from './ledger/entities.ts'
export { type LedgerEntry, listEntries } from './ledger/entries.ts'
export { createLedgerEraser } from './ledger/erase-customer.ts'
export { type GrantRecord, listGrants } from './ledger/grant-record.ts'
export { grantUnits } from './ledger/grants.ts'
export { selectClock as selectLedgerClock } from './ledger/grants-store.ts'
export { holdCustomers } from './ledger/hold-customers.ts'
export { mergeAccounts } from './ledger/merge-accounts.ts'
export { getOperation, listOperations, type OperationRecord, type PaidPart } from './ledger/operations.ts'
export { createPaidSpends, isChanged, type PaidSpends } from './ledger/paid-spend.ts'
export { ensureEntryPartitions } from './ledger/partitions.ts'
export { endPurchase, movePurchaseEnd } from './ledger/purchases.ts'
export { refundPart, restorePurchase } from './ledger/refunds.ts'
export { reverseOperation } from './ledger/reverse.ts'
export { revokeGrant } from './ledger/revoke.ts'
export type { ReversedPart, SavedReversal } from './ledger/saved-reversal.ts'
export type { ConsumeAnswer, ConsumeCommand } from './ledger/slot.ts'
export { splitAccounts } from './ledger/split-accounts.ts'
export { createStanding, readStandings, refuseDeleted, type WholeStanding, type Whose } from './ledger/standing.ts'
export { ledgerSettings } from './ledger/state-store.ts'
export { sweepGrants } from './ledger/sweep.ts'
export { setTestClock } from './ledger/test-clock.ts'
export { verifyLedger } from './ledger/verify.ts'
