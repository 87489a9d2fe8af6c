import assert from 'node:assert/strict'
import test from 'node:test'
import type { Account, Change } from '../types.ts'
import { applyChanges } from './apply.ts'
import { account, grant } from './testing/build.ts'

function loaded(): { own: Account; accounts: Map<bigint, Account> } {
  const own = account([{ amount: 10n, remaining: 4n }], {
    entities: new Map([['seat', { used: 2n, registered: true }]]),
  })
  return { own, accounts: new Map([[own.id, own]]) }
}
const of = { account: 1n, grant: 1000n, period: 0n }

test('draws, resets, rollovers and counters are what the next command of the batch sees', () => {
  const { own, accounts } = loaded()
  const rolled = grant({ id: -7n, rolledFrom: 1000n, amount: 4n })
  applyChanges(accounts, [
    { kind: 'lapse', ...of, delta: -4n, remaining: 0n, rolled: 4n },
    { kind: 'refill', ...of, period: 3n, delta: 10n, remaining: 10n },
    { kind: 'rollover', account: 1n, from: 1000n, period: 3n, grant: rolled },
    { kind: 'draw', ...of, period: 3n, delta: -10n, remaining: 0n },
    { kind: 'draw', ...of, grant: -7n, delta: -1n, remaining: 3n },
    { kind: 'used', account: 1n, entity: null, used: 11n },
    { kind: 'used', account: 1n, entity: 'seat', used: 3n },
    { kind: 'used', account: 1n, entity: 'new', used: 1n },
  ])
  const [first, second] = own.grants
  assert.deepEqual([first?.remaining, first?.periodNo, second?.remaining, own.used], [0n, 3n, 3n, 11n])
  assert.deepEqual(
    [...own.entities],
    [
      ['seat', { used: 3n, registered: true }],
      ['new', { used: 1n, registered: false }],
    ],
  )
})

test('the number that the store gives a rollover grant is known to the account at once', () => {
  const { own, accounts } = loaded()
  const rolled = grant({ id: -7n, rolledFrom: 1000n, amount: 4n })
  applyChanges(accounts, [{ kind: 'rollover', account: 1n, from: 1000n, period: 1n, grant: rolled }])
  rolled.id = 77n
  assert.equal(own.grants[1]?.id, 77n)
})

const wrong: [what: string, change: Change][] = [
  ['starts from something else than the grant holds', { kind: 'draw', ...of, delta: -1n, remaining: 4n }],
  ['would leave less than nothing', { kind: 'draw', ...of, delta: -5n, remaining: -1n }],
  ['would leave more than the amount', { kind: 'refill', ...of, delta: 10n, remaining: 14n }],
  ['names a grant that is not loaded', { kind: 'draw', ...of, grant: 5n, delta: -1n, remaining: 3n }],
  ['names an account that is not loaded', { kind: 'used', account: 5n, entity: null, used: 1n }],
  ['lowers a counter', { kind: 'used', account: 1n, entity: 'seat', used: 1n }],
]
for (const [what, change] of wrong) {
  test(`a change that ${what} stops the batch`, () => assert.throws(() => applyChanges(loaded().accounts, [change])))
}
