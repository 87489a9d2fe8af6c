export { attachProduct } from './attach-product.ts'
export type { Balance, BalanceGrant } from './balance.ts'
export { type BalanceQuery, type BalanceServices, createBalances } from './balances.ts'
export { type Catalogue, Catalogues } from './catalogue.ts'
export { type AccessAnswer, type AccessQuery, createCheck } from './check.ts'
export { createConsume } from './consume.ts'
export { costText } from './credit-costs.ts'
export { decimalText } from './decimals.ts'
export { type LedgerEntry, listEntries } from './entries.ts'
export {
  archiveFeature,
  createFeature,
  type Edit,
  type FeatureRecord,
  getFeature,
  listFeatures,
  publishedFeatures,
  publishFeature,
  updateFeature,
} from './features.ts'
export { intervals } from './grant-terms.ts'
export { type GrantRecord, grantUnits, listGrants } from './grants.ts'
export { mergeAccounts } from './merge-accounts.ts'
export { ensureEntryPartitions } from './partitions.ts'
export {
  archiveProduct,
  createProduct,
  type GrantTemplate,
  getProduct,
  listProducts,
  type ProductRecord,
  type StoreLink,
  updateProduct,
} from './products.ts'
export type { ConsumeAnswer, ConsumeCommand } from './slot.ts'
export { createStanding, createVersions, type Versions, type WholeStanding, type Whose } from './standing.ts'
export { ledgerSettings } from './state-store.ts'
export { activeFeatures } from './view.ts'
