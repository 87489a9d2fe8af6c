import { assert, must, unreachable } from '../../kernel/assert.ts'
import type { Account, Change, EntityOffer, Grant } from '../types.ts'

/**
 * Makes the loaded accounts what the store will hold once `changes` are written, so that the next command of the same
 * batch sees them. The one function of the ledger's core that alters what it is given.
 */
export function applyChanges(accounts: ReadonlyMap<bigint, Account>, changes: readonly Change[]): void {
  for (const change of changes) applyChange(must(accounts.get(change.account), 'the changed account is loaded'), change)
}

export function applyChange(account: Account, change: Change): void {
  switch (change.kind) {
    case 'draw':
    case 'lapse':
    case 'reverse':
    case 'shrink':
      setRemaining(grantOf(account, change.grant), change)
      return
    case 'refill': {
      const grant = grantOf(account, change.grant)
      setRemaining(grant, change)
      grant.periodNo = change.period
      return
    }
    case 'revoke': {
      const grant = grantOf(account, change.grant)
      setRemaining(grant, change)
      grant.revokedAt = change.revokedAt
      return
    }
    case 'restore': {
      const grant = grantOf(account, change.grant)
      setRemaining(grant, change)
      grant.revokedAt = null
      return
    }
    case 'extend': {
      const grant = grantOf(account, change.grant)
      setRemaining(grant, change)
      grant.expiresAt = change.expiresAt
      grant.paidUntil = change.paidUntil
      return
    }
    case 'grant':
      account.grants.push(change.grant)
      account.offers = must(account.offers, 'the offer is loaded').map((offer) =>
        offer.id === change.offer ? taken(offer, change.grant) : offer,
      )
      return
    case 'rollover':
      // The very grant of the change: the number that the store gives it is then known here too.
      account.grants.push(change.grant)
      return
    case 'used':
      setUsed(account, change)
      return
    default:
      unreachable(change)
  }
}

/** The account as it will be; the one given, its grants and the changes are left as they are. */
export function withChanges(account: Account, changes: readonly Change[]): Account {
  const copy: Account = {
    ...account,
    grants: account.grants.map((grant) => ({ ...grant })),
    entities: new Map(account.entities),
  }
  for (const change of changes) {
    const isNew = change.kind === 'rollover' || change.kind === 'grant'
    applyChange(copy, isNew ? { ...change, grant: { ...change.grant } } : change)
  }
  return copy
}

function grantOf(account: Account, id: bigint): Grant {
  return must(
    account.grants.find((grant) => grant.id === id),
    'the changed grant is loaded',
  )
}

function taken(offer: EntityOffer, { entityId }: Grant): EntityOffer {
  assert(offer.taken < offer.max, 'an offer has no more places than it says')
  return { ...offer, taken: offer.taken + 1, had: new Set([...offer.had, must(entityId, 'offers are for entities')]) }
}

function setRemaining(grant: Grant, { delta, remaining }: { delta: bigint; remaining: bigint }): void {
  assert(grant.remaining + delta === remaining, 'a change starts from what the grant holds')
  assert(remaining >= 0n && remaining <= grant.amount, 'a grant holds 0 to its amount')
  grant.remaining = remaining
}

function setUsed(account: Account, { entity, used }: { entity: string | null; used: bigint }): void {
  if (entity === null) {
    assert(used >= account.used, 'a counter never falls')
    account.used = used
    return
  }
  const counter = account.entities.get(entity)
  assert(used >= (counter?.used ?? 0n), 'a counter never falls')
  account.entities.set(entity, { used, registered: counter?.registered ?? false })
}
