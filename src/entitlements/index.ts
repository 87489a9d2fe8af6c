export { type Attachment, attachProduct } from './attach-product.ts'
export type { Balance, BalanceGrant } from './balance.ts'
export { type BalanceQuery, type BalanceServices, createBalances } from './balances.ts'
export { type Catalogue, Catalogues } from './catalogue.ts'
export { type AccessAnswer, type AccessQuery, createCheck } from './check.ts'
export { createConsume } from './consume.ts'
export { type CreditCost, costText } from './credit-costs.ts'
export { decimalText } from './decimals.ts'
export { entryPosition, type LedgerEntry, listEntries } from './entries.ts'
export {
  archiveFeature,
  createFeature,
  type Edit,
  type FeatureChanges,
  type FeatureRecord,
  getFeature,
  listFeatures,
  type NewFeature,
  publishedFeatures,
  publishFeature,
  updateFeature,
} from './features.ts'
export { type GrantTerms, type Interval, intervals } from './grant-terms.ts'
export { type GrantRecord, type GrantSource, type GrantState, grantUnits, listGrants, type NewGrant } from './grants.ts'
export { mergeAccounts } from './merge-accounts.ts'
export { ensureEntryPartitions } from './partitions.ts'
export {
  archiveProduct,
  createProduct,
  type GrantTemplate,
  getProduct,
  listProducts,
  type NewProduct,
  type ProductChanges,
  type ProductRecord,
  type StoreLink,
  updateProduct,
} from './products.ts'
export type { ConsumeAnswer, ConsumeCommand } from './slot.ts'
export { createStanding, createVersions, type Versions } from './standing.ts'
export type { Standing } from './state.ts'
export { ledgerSettings } from './state-store.ts'
export type { Feature, FeatureType } from './types.ts'
export { type ActiveFeature, activeFeatures } from './view.ts'
