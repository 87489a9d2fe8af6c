import assert from 'node:assert/strict'
import test from 'node:test'
import { transferEveryMs } from '../kernel/limits.ts'
import { type Claim, decideOwner } from './ownership.ts'

const claim: Claim = {
  claimantId: 'a',
  owner: { kind: 'none' },
  tokens: [],
  familyShared: false,
  isConsumable: false,
  hasAccess: true,
  lastTransferAt: null,
  settings: { unboundPurchases: 'reject', transferPolicy: 'keep' },
  now: 10 * transferEveryMs,
}
const owned = (by: string): Partial<Claim> => ({ owner: { kind: 'customer', id: by } })
const policy = (transferPolicy: Claim['settings']['transferPolicy']): Partial<Claim> => ({
  settings: { unboundPurchases: 'reject', transferPolicy },
})
const open: Partial<Claim> = { settings: { unboundPurchases: 'first_claim', transferPolicy: 'keep' } }
const [mine, theirs, unknown, none] = [
  { kind: 'claimant' },
  { kind: 'other', customerId: 'b' },
  { kind: 'unknown' },
  { kind: 'none' },
] as const
const unverified = { kind: 'owner_unverified' }
const conflict = { kind: 'conflict' }

const table: [string, Partial<Claim>, object][] = [
  ['the owner', owned('a'), { kind: 'owned' }],
  ['the owner, whatever a later token says', { ...owned('a'), tokens: [theirs] }, { kind: 'owned' }],
  ['somebody else', owned('b'), conflict],
  ['somebody else, though the token names the caller', { ...owned('b'), tokens: [mine] }, conflict],
  ['an owner who was deleted', { owner: { kind: 'deleted' }, tokens: [mine] }, conflict],
  ['an unknown caller of an owned one', { ...owned('b'), claimantId: null }, conflict],
  ['transfer', { ...owned('b'), ...policy('transfer') }, { kind: 'transfer' }],
  ['transfer of units', { ...owned('b'), ...policy('transfer'), isConsumable: true }, conflict],
  [
    'a second transfer within a day',
    { ...owned('b'), ...policy('transfer'), lastTransferAt: claim.now - transferEveryMs + 1 },
    conflict,
  ],
  [
    'a second transfer after a day',
    { ...owned('b'), ...policy('transfer'), lastTransferAt: claim.now - transferEveryMs },
    { kind: 'transfer' },
  ],
  ['transfer if inactive, active', { ...owned('b'), ...policy('transfer_if_inactive') }, conflict],
  [
    'transfer if inactive, inactive',
    { ...owned('b'), ...policy('transfer_if_inactive'), hasAccess: false },
    { kind: 'transfer' },
  ],
  ["the caller's token", { tokens: [mine] }, { kind: 'attach', first: false }],
  ["another's token", { tokens: [theirs] }, unverified],
  ['an unknown token', { tokens: [unknown] }, unverified],
  ['no token', { tokens: [none] }, unverified],
  ["the newest renewal's token", { tokens: [none, mine] }, { kind: 'attach', first: false }],
  ['the own token before that of the renewal', { tokens: [theirs, mine] }, unverified],
  ['first claim without a token', { ...open, tokens: [none] }, { kind: 'attach', first: true }],
  ['first claim of an unknown token', { ...open, tokens: [unknown] }, { kind: 'attach', first: true }],
  ["first claim of another's token", { ...open, tokens: [theirs] }, unverified],
  ['a member of a family', { familyShared: true, tokens: [none] }, { kind: 'attach', first: true }],
]

for (const [name, part, expected] of table) {
  test(`whose it is: ${name}`, () => assert.deepEqual(decideOwner({ ...claim, ...part }), expected))
}
