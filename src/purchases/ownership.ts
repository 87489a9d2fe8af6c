import { transferEveryMs } from '../kernel/limits.ts'
import type { Ms, StoreSettings } from './types.ts'

/** Whom an account token names. */
export type TokenOwner =
  | { kind: 'none' }
  | { kind: 'claimant' }
  | { kind: 'other'; customerId: string }
  /** By no rule and no registered value. */
  | { kind: 'unknown' }

export interface Claim {
  /** Canonical; null: the id names nobody yet. */
  claimantId: string | null
  /** Of the lineage; `deleted`: it had one. */
  owner: { kind: 'none' } | { kind: 'deleted' } | { kind: 'customer'; id: string }
  /** In the order in which they decide: the purchase's own, those of what it continues, the newest renewal's. */
  tokens: TokenOwner[]
  familyShared: boolean
  /** Units that were sold once never change hands. */
  isConsumable: boolean
  hasAccess: boolean
  lastTransferAt: Ms | null
  settings: Pick<StoreSettings, 'unboundPurchases' | 'transferPolicy'>
  now: Ms
}

export type Ownership =
  | { kind: 'owned' }
  | { kind: 'conflict' }
  | { kind: 'owner_unverified' }
  | { kind: 'transfer' }
  /** `first`: nothing said whose it is; what it carries is the claimant's from now on. */
  | { kind: 'attach'; first: boolean }

/** Whose a purchase is when somebody brings it. Pure. */
export function decideOwner(claim: Claim): Ownership {
  const { owner, claimantId } = claim
  if (owner.kind === 'deleted') return { kind: 'conflict' }
  if (owner.kind === 'customer') {
    if (owner.id === claimantId) return { kind: 'owned' }
    return maySwitch(claim) ? { kind: 'transfer' } : { kind: 'conflict' }
  }
  const telling = claim.tokens.find(({ kind }) => kind === 'claimant' || kind === 'other')
  if (telling?.kind === 'claimant') return { kind: 'attach', first: false }
  if (telling?.kind === 'other') return { kind: 'owner_unverified' }
  const open = claim.familyShared || claim.settings.unboundPurchases === 'first_claim'
  return open ? { kind: 'attach', first: true } : { kind: 'owner_unverified' }
}

function maySwitch({ settings, isConsumable, hasAccess, lastTransferAt, now }: Claim): boolean {
  if (isConsumable || settings.transferPolicy === 'keep') return false
  if (lastTransferAt !== null && now - lastTransferAt < transferEveryMs) return false
  return settings.transferPolicy === 'transfer' || !hasAccess
}
