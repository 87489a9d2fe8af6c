import assert from 'node:assert/strict'
import { test } from 'node:test'
import { audit } from './audit.ts'
import type {
  AuditedAccount,
  AuditedEntry,
  AuditedGrant,
  AuditedOperation,
  Happenings,
  Standings,
} from './audit-rows.ts'

function account(id: bigint, part: Partial<AuditedAccount> = {}): AuditedAccount {
  const place = { id, scopeId: 1, customerId: 'c', featureId: 1, mergedInto: null }
  return { ...place, used: 0n, lastAt: 1000, version: 0n, ...part }
}

function grant(part: Partial<AuditedGrant> = {}): AuditedGrant {
  const place = { id: 7n, accountId: 1n, scopeId: 1, featureId: 1, entityId: null, rolledFrom: null }
  const units = { unlimited: false, amount: 10n, remaining: 10n, effectiveAt: 0, periodNo: 0n, revokedAt: null }
  return { ...place, ...units, ...part }
}

function entry(part: Partial<AuditedEntry>): AuditedEntry {
  const place = { at: 1, scopeId: 1, accountId: 1n, version: 1n, line: 0, grantId: 7n, period: 0n }
  return { ...place, kind: 'grant', delta: 10n, remaining: 10n, operationId: null, ...part }
}

function spend(part: Partial<AuditedOperation>): AuditedOperation {
  const asked = { customerId: 'c', featureKey: 'exports', entityId: null, mode: 'consume' as const, quantity: 4n }
  const answer = { accepted: true, code: 'consumed', balance: 6n, unlimited: false, active: true }
  return { at: 2, scopeId: 1, operationId: 'op', featureType: 'metered', version: 2n, ...asked, ...answer, ...part }
}

/** One customer, one account, 10 units granted and 4 of them spent, unless named otherwise. */
function ledger(standings: Partial<Standings> = {}, happenings: Partial<Happenings> = {}): [Standings, Happenings] {
  return [
    {
      customers: new Map([['1 c', null]]),
      features: [
        { id: 1, scopeId: 1, key: 'exports', type: 'metered', scale: 0 },
        { id: 2, scopeId: 1, key: 'credits', type: 'creditSystem', scale: 1 },
      ],
      costs: [{ system: 2, member: 1, credits: 2n, per: 3n, since: 0 }],
      accounts: [account(1n, { used: 4n, version: 2n })],
      entities: [],
      grants: [grant({ remaining: 6n })],
      ...standings,
    },
    {
      entries: [entry({}), entry({ at: 2, version: 2n, kind: 'draw', delta: -4n, remaining: 6n, operationId: 'op' })],
      operations: [spend({})],
      refills: [],
      ...happenings,
    },
  ]
}

test('finds nothing in a right ledger, in whatever order its rows come', () => {
  const [standings, { entries, operations, refills }] = ledger()
  assert.deepEqual(audit(standings, { entries, operations, refills }), [])
  assert.deepEqual(audit(standings, { entries: entries.toReversed(), operations, refills }), [])
})

test('names the rule, the rows, what it expected and what it found', () => {
  const [standings, happenings] = ledger({ grants: [grant({ remaining: 7n })] })
  const ids = { scope: 1, account: 1n, grant: 7n }
  assert.deepEqual(audit(standings, happenings), [
    { rule: 'remaining', ids, expected: '6 (sum of entries)', found: '7' },
    { rule: 'remaining', ids, expected: '6 (last entry)', found: '7' },
  ])
})

/** 4 units at 2/3 credit, in tenths: 26.7, so a charge of 27 and no other pays for them. */
function pooled(charge: bigint): [Standings, Happenings] {
  const accounts = [account(1n, { used: 4n, version: 1n }), account(2n, { featureId: 2, version: 2n })]
  const grants = [grant({ accountId: 2n, featureId: 2, amount: 100n, remaining: 100n - charge })]
  const made = entry({ accountId: 2n, delta: 100n, remaining: 100n })
  const drawn = { kind: 'draw', delta: -charge, remaining: 100n - charge, operationId: 'op' }
  return ledger(
    { accounts, grants },
    { entries: [made, entry({ at: 2, accountId: 2n, version: 2n, ...drawn })], operations: [spend({ version: 1n })] },
  )
}

test('holds what a pool paid against the rational cost, rounded up once', () => {
  const rules = (charge: bigint) => audit(...pooled(charge)).map(({ rule }) => rule)
  assert.deepEqual([26n, 27n, 28n].map(rules), [['cost'], [], ['cost']])
})

test('leaves the price open for what was paid before the costs last changed', () => {
  const [standings, happenings] = pooled(50n)
  const costs = [{ system: 2, member: 1, credits: 2n, per: 3n, since: 3 }]
  assert.deepEqual(audit({ ...standings, costs }, happenings), [])
})

/** A total of 9 that an unlimited grant covered, with 4 units of an account that was merged into this one at some time. */
function merged(used: bigint): [Standings, Happenings] {
  const [standings, { entries, operations }] = ledger()
  const unlimited = { unlimited: true, balance: null, mode: 'set_usage', quantity: 9n } as const
  return [
    {
      ...standings,
      customers: new Map([
        ['1 c', 'd'],
        ['1 d', null],
      ]),
      accounts: [
        account(1n, { used: 4n, version: 3n, mergedInto: 5n }),
        account(5n, { customerId: 'd', used, version: 2n }),
      ],
      grants: [grant({ accountId: 5n, remaining: 6n })],
    },
    {
      entries,
      operations: [...operations, spend({ ...unlimited, at: 3, operationId: 'all', customerId: 'd', version: 1n })],
      refills: [],
    },
  ]
}

test('after a merge, knows a total covered by an unlimited grant only to have added between nothing and itself', () => {
  for (const used of [4n, 9n, 13n]) assert.deepEqual(audit(...merged(used)), [])
  for (const used of [3n, 14n]) assert.ok(audit(...merged(used)).some(({ rule }) => rule === 'used'))
})
