import type { FeatureType, Grant, Ms, Units, UsageMode } from '../types.ts'

/** Something the tables say that the ledger cannot have written. */
export interface Finding {
  rule: Rule
  /** Where: scope, account, grant, operation, version … as far as they are known. */
  ids: Record<string, string | number | bigint>
  expected: string
  found: string
}

export type Rule =
  /** A row names an account, grant, Feature or scope that it cannot belong to. */
  | 'place'
  /** A merged account leads to one that is not merged, of the same Feature, and holds no grants. */
  | 'merged_into'
  /** Versions and lines of an account are unique, rise with time, and each has its cause. */
  | 'version'
  /** No row is later than its account's clock. */
  | 'clock'
  /** An entry starts from what the one before left, and moves as its kind does. */
  | 'chain'
  /** What the grant holds is what its entries say. */
  | 'remaining'
  | 'amount'
  | 'period'
  | 'revoked'
  /** Only what no decision needs is kept out of decisions. */
  | 'hidden'
  /** Refill rows and lapse, refill and rollover entries tell the same. */
  | 'refill'
  /** Operations and the entries that paid for them find each other. */
  | 'operation'
  /** What was paid is exactly the cost. */
  | 'cost'
  /** The counter is what the accepted operations add up to. */
  | 'used'
  /** The saved answer is one that the service gives. */
  | 'answer'

export interface AuditedAccount {
  id: bigint
  scopeId: number
  customerId: string
  featureId: number
  used: Units
  lastAt: Ms
  version: bigint
  mergedInto: bigint | null
  /** The account that it had been merged into, until that was taken back. */
  splitFrom?: bigint | null
}

export type AuditedGrant = Pick<
  Grant,
  | 'id'
  | 'accountId'
  | 'entityId'
  | 'rolledFrom'
  | 'unlimited'
  | 'amount'
  | 'remaining'
  | 'effectiveAt'
  | 'periodNo'
  | 'revokedAt'
> & {
  scopeId: number
  featureId: number
  /** No decision sees it, though it may hold units and has not ended. */
  hidden?: boolean
}

export interface AuditedFeature {
  id: number
  scopeId: number
  key: string
  type: FeatureType
  scale: number
}

/** One unit of the member costs `credits / per`; `since` is when that may have changed last. */
export interface AuditedCost {
  system: number
  member: number
  credits: bigint
  per: bigint
  since: Ms
}

/** Whole standings: customers with every record merged into them, and all that these have. */
export interface Standings {
  /** By `scope id`: what the record was merged into. */
  customers: ReadonlyMap<string, string | null>
  features: AuditedFeature[]
  costs: AuditedCost[]
  accounts: AuditedAccount[]
  entities: { accountId: bigint; entityId: string; used: Units }[]
  grants: AuditedGrant[]
}

export interface AuditedEntry {
  at: Ms
  scopeId: number
  accountId: bigint
  version: bigint
  line: number
  grantId: bigint
  period: bigint
  kind: string
  delta: Units
  /** Of the grant, after it. */
  remaining: Units
  operationId: string | null
}

export interface AuditedOperation {
  at: Ms
  scopeId: number
  /** Absent for a spend; what a reversal says that it gave back. */
  returned?: { grantId: bigint; units: Units }[]
  operationId: string
  customerId: string
  featureKey: string
  featureType: FeatureType | undefined
  entityId: string | null
  mode: UsageMode
  quantity: Units
  accepted: boolean
  code: string
  balance: Units | null
  unlimited: boolean
  active: boolean
  /** Of the Feature's account. */
  version: bigint
}

export interface AuditedRefill {
  at: Ms
  grantId: bigint
  periodNo: bigint
  lapsed: Units
  rolled: Units
}

/** What happened at some instants: all of it, for the standings audited. */
export interface Happenings {
  entries: AuditedEntry[]
  operations: AuditedOperation[]
  refills: AuditedRefill[]
}

export type Report = (finding: Finding) => void
