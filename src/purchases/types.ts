import type { ProductRecord, StoreLink } from '../entitlements/index.ts'
import type { JsonObject } from '../events/index.ts'
import type { AppScope, Scope } from '../tenancy/index.ts'

/** Unix milliseconds. */
export type Ms = number

export type Store = 'appstore' | 'playstore' | 'stripe'
/** Stores that sell on the device, which brings what they signed. */
export type DeviceStore = Exclude<Store, 'stripe'>
/** Of the evidence, not of the key that brought it. Licence testers of Google Play buy in `sandbox`. */
export type StoreEnvironment = 'production' | 'sandbox' | 'xcode'

/** The end of a purchase's error code, behind `app_store_purchase_`, `android_store_purchase_` or `stripe_purchase_`. */
export type Suffix =
  | 'invalid'
  | 'owner_unverified'
  | 'unsupported'
  | 'conflict'
  | 'reconciliation_retryable'
  | 'unavailable'

/** Why an authentic purchase of the caller's can't be attached. */
export type Unsupported =
  | 'billing_retry'
  | 'expired'
  | 'revoked'
  | 'superseded'
  | 'duration_not_configured'
  | 'family_shared'
  | 'product_type'
  | 'on_hold'
  | 'paused'
  | 'purchase_pending'
  | 'purchase_canceled'
  | 'evidence_expired'
  | 'preorder'
  | 'rental'

/** What is kept of evidence that a change of the catalogue may make good. */
export interface AwaitedLink {
  storeEnvironment: StoreEnvironment
  evidenceKey: string
  storeProductId: string
}

/** No purchase came out of the evidence. */
export interface Refused {
  kind: 'refused'
  suffix: Suffix
  /** Public, for `unsupported`; for the log otherwise. */
  detail: string
  retryAfterS?: number
  /** For the log only. */
  cause?: unknown
  /** Authentic evidence for a store product that leads to no Product yet: kept until one does. */
  unmapped?: AwaitedLink
  /** Authentic evidence for a store product whose link does not say how long it lasts: kept until it does. */
  unmeasured?: AwaitedLink
}

export type Verdict = { kind: 'verified'; purchase: VerifiedPurchase } | AsStored | Refused

/** The store was asked a moment ago, or has forgotten what we hold: what is stored decides. Of known lineages only. */
export interface AsStored {
  kind: 'as_stored'
  storeEnvironment: StoreEnvironment
  evidenceKey: string
  /** For the answer, where none was saved yet. */
  result?: PurchaseIdentity
}

/** The app as its stores know it, with everything that verification needs. */
export interface StoreApp {
  scope: Scope
  appId: string
  bundleId: string | null
  packageName: string | null
  accountTokenNamespace: string
  settings: StoreSettings
  credentials: StoreCredentials
  /** Of the project's test environment; 0 in live. */
  clockOffsetMs: number
}

export interface StoreSettings {
  sandboxInLive: 'review' | 'anybody' | 'nobody'
  reviewOpenUntil: Ms | null
  /** Ids of customers. */
  reviewCustomers: string[]
  unboundPurchases: 'reject' | 'first_claim'
  transferPolicy: 'keep' | 'transfer_if_inactive' | 'transfer'
  /** Null: every public base address of this deployment and the fixed words. */
  clientTokenNamespaces: string[] | null
  revocation: 'background' | 'strict'
  pollLeaseHours: number
  playVoidedOrderEndsAccess: boolean
  /** Where payment pages may send people back to; the first one is the usual one. None: no payment pages. */
  checkoutReturnUrls: string[]
  /** How long a subscription whose card failed goes on. */
  cardGraceHours: number
}

/** Opened; what is absent was never put. */
export interface StoreCredentials {
  appstore?: AppStoreCredential
  playstore?: PlayStoreCredential
  stripe?: { secretKey: string; webhookSecret: string }
  /** Test only. */
  appstoreTrust?: { roots: string[]; xcodeCertificates: string[] }
  /** Test only. */
  endpoints?: {
    appstoreApi: string | null
    playApi: string | null
    playJwks: string | null
    stripeApi: string | null
  }
}

export interface AppStoreCredential {
  appAppleId: number | null
  /** All three or none. */
  api: { issuerId: string; keyId: string; privateKey: string } | null
}

export interface PlayStoreCredential {
  serviceAccount: { clientEmail: string; privateKey: string; privateKeyId: string | null; tokenUri: string }
  pubsubSubscription: string | null
  pushAudience: string | null
  pushEmail: string | null
}

/** What a client hands in, form checked. */
export interface Evidence {
  store: DeviceStore
  /** The signed transaction, or the token. */
  text: string
  /** What the client says of a Play purchase: compared, never believed. */
  claims: {
    productId?: string | undefined
    basePlanId?: string | undefined
    purchaseOptionId?: string | undefined
    offerId?: string | undefined
    productType?: 'subscription' | 'one_time' | undefined
    packageName?: string | undefined
  }
  /** Consume after attaching; Google Play only. */
  consume: boolean
}

/** Verifies one piece of evidence outside any transaction. It writes nothing. */
export type Verifier = (app: StoreApp, evidence: Evidence, context: VerifyContext) => Promise<Verdict>

export interface VerifyContext {
  /** Of the app: the wall clock, or the test clock of a test environment. */
  now: Ms
  /** Whoever claims it, as far as the id names somebody: sandbox purchases may be taken from some customers only. */
  customerId: string | null
  /** Attached already: what was let in once is kept up to date. */
  held?: boolean
  /** The Product that a store product leads to, most specific link first. */
  productFor: (found: StoreProduct) => Promise<MappedProduct | null>
  /** What is stored of the lineage, so that fresh state is not read again. */
  known: (storeEnvironment: StoreEnvironment, evidenceKey: string) => Promise<KnownLineage | null>
  /** What the first answer said of this very evidence. */
  saved: (storeEnvironment: StoreEnvironment, evidenceKey: string) => Promise<PurchaseIdentity | null>
}

export interface StoreProduct {
  storeProductId: string
  basePlanId: string | null
  purchaseOptionId: string | null
  offerId: string | null
}

export interface MappedProduct {
  product: ProductRecord
  link: StoreLink
}

export interface KnownLineage {
  rootKey: string
  /** By the wall clock. */
  lastReadAt: Ms | null
  version: Ms
  revoked: boolean
  /** It is somebody's. */
  attached: boolean
  /** It was consumed before it was anybody's. */
  usedUp: boolean
}

/** What we believe after checking, whatever the store: one lineage as of one instant. */
export interface VerifiedPurchase {
  store: Store
  storeEnvironment: StoreEnvironment
  /** Of what the caller handed in: transaction id; hex SHA-256 of the token. */
  evidenceKey: string
  /** Original transaction id; of a token the one its chain began with. */
  rootKey: string
  /** Tokens by which an earlier lineage, or part of this one, is found; the nearest first. Google Play only. */
  linkedKeys: string[]
  /** When the caller's transaction was bought. */
  purchasedAt: Ms
  /** Orders states: signedDate of the newest part; the instant before the read. */
  version: Ms
  /** Read from the store just now; null: the signed string alone. */
  readAt: Ms | null
  unpolled: boolean
  /** Of the purchase itself, then of the newest renewal; as signed. Null: none, or all zeros. */
  accountToken: string | null
  renewalAccountToken: string | null
  familyShared: boolean
  /** The word of the decision tables for the whole: active, grace, billing_retry, expired … */
  status: string
  autoRenews: boolean | null
  pendingProduct: string | null
  /** When to look again though nobody says anything. */
  nextCheckAt: Ms | null
  /** Transactions or tokens that this state tells of; the caller's is one of them. */
  transactions: VerifiedTransaction[]
  /** Already used up by somebody else than us: nothing is granted. Google Play only. */
  consumedElsewhere: boolean
  /** What the stores must be told once this is attached. */
  outbox: OutboxItem[]
  /** For the answer: identity fields of the purchase. */
  result: PurchaseIdentity
  /** What only one store knows, kept with the lineage. */
  extra: JsonObject | null
}

export interface VerifiedTransaction {
  evidenceKey: string
  version: Ms
  /** Google Play: to be sealed. */
  token: string | null
  /** Evidence key of what took its place. */
  supersededBy: string | null
  periods: VerifiedPeriod[]
  claims: JsonObject
  /** App Store: hex SHA-256 of the certificate that signed it; absent where nothing was signed anew. */
  signer?: string | null
}

/** What was paid for at once. */
export interface VerifiedPeriod extends StoreProduct {
  line: string
  key: string
  type: 'subscription' | 'one_time'
  consumable: boolean
  mapped: MappedProduct
  quantity: number
  /** Of the quantity, given back in part; units follow it. Google Play only. */
  refundedQuantity?: number
  orderId: string | null
  startsAt: Ms
  /** Without grace; null: no end. */
  paidUntil: Ms | null
  /** `paidUntil` has grace in it, for the store tells no other: what was known before stays. Google Play only. */
  inGrace?: boolean
  /** Paid ahead: the time of a top-up follows that of the purchase before it. Google Play only. */
  prepaid?: boolean
  access: PeriodAccess
}

export type PeriodAccess =
  | { kind: 'open'; until: Ms | null }
  /** No access now. `claim`: it may come back, so a claim is kept for whoever brought it. */
  | { kind: 'closed'; detail: Unsupported; claim: boolean; revocation: Revocation | null }
  | { kind: 'superseded'; at: Ms }

export interface Revocation {
  at: Ms
  reason: number | null
  /** Of the units: 1 is all. */
  share: number
  kind: 'refund' | 'family' | 'other'
}

export interface OutboxItem {
  kind: 'ack' | 'consume' | 'account_token'
  key: string
  payload: JsonObject
  deadline: Ms | null
}

/** The part of a purchase result that a replay repeats. */
export interface PurchaseIdentity {
  transactionId?: string
  orderId?: string
  catalogProduct?: {
    id: string
    store_product_id: string
    base_plan_id: string | null
    purchase_option_id: string | null
    offer_id: string | null
    store_product_type: 'subscription' | 'one_time'
  }
}

export interface PurchaseCommand {
  scope: AppScope
  distinctId: string
  evidence: Evidence
}

export interface PurchaseAnswer extends PurchaseIdentity {
  customerId: string
  replay: boolean
}
