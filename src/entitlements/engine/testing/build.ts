import type { Account, Feature, Grant, PoolState, State } from '../../types.ts'

/** Plain values for tests: what a test doesn't name is ordinary. */
export function feature(terms: Partial<Feature> = {}): Feature {
  return {
    id: 1,
    publicId: 'feat_1',
    key: 'exports',
    name: 'Exports',
    type: 'metered',
    platforms: null,
    scale: 0,
    ...terms,
  }
}

export function grant(terms: Partial<Grant> = {}): Grant {
  const amount = terms.amount ?? 10n
  return {
    id: 1n,
    accountId: 1n,
    entityId: null,
    origin: 'manual',
    rolledFrom: null,
    rank: 0,
    unlimited: false,
    amount,
    remaining: amount,
    effectiveAt: 0,
    expiresAt: null,
    paidUntil: null,
    cycle: null,
    periodNo: 0n,
    rollover: null,
    revokedAt: null,
    createdAt: 0,
    ...terms,
  }
}

/** An account of the given grants; they are numbered in order unless they say otherwise. */
export function account(grants: Partial<Grant>[] = [], terms: Partial<Account> = {}): Account {
  const id = terms.id ?? 1n
  return {
    id,
    featureId: Number(id),
    used: 0n,
    entities: new Map(),
    grants: grants.map((each, i) => grant({ id: id * 1000n + BigInt(i), accountId: id, ...each })),
    lastAt: 0,
    version: 0n,
    ...terms,
  }
}

/** A credit system of which one unit of the asked Feature costs `credits / per`. Its account and Feature are numbered `id`. */
export function pool(
  grants: Partial<Grant>[],
  terms: { id?: number; credits?: bigint; per?: bigint; scale?: number } = {},
): PoolState {
  const { id = 2, credits = 1n, per = 1n, scale = 0 } = terms
  return {
    feature: feature({ id, key: `credits-${id}`, type: 'creditSystem', scale }),
    cost: { credits, per },
    account: account(grants, { id: BigInt(id) }),
  }
}

/** One account with one grant of ten units, unless named otherwise. */
export function state(terms: Partial<State> = {}): State {
  return { now: 1_000, feature: feature(), applies: true, entity: null, own: account([{}]), pools: [], ...terms }
}

/** The accounts of a state by id, as a batch holds them. */
export function accountsById({ own, pools }: State): Map<bigint, Account> {
  const accounts = pools.map((each) => each.account)
  return new Map((own ? [own, ...accounts] : accounts).map((each) => [each.id, each]))
}
