import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from '../../../test/harness/random.ts'
import { grantSettledAfterMs } from '../../kernel/limits.ts'
import type { Account } from '../types.ts'
import { decideAccess } from './access.ts'
import { accessIntervals } from './intervals.ts'
import { decideRevoke } from './revoke.ts'
import { hideable } from './sweep.ts'
import { entities, grantTerms, instants, timedCommands, worlds } from './testing/arbitrary.ts'
import { account, grant } from './testing/build.ts'
import { Ledger } from './testing/ledger.ts'

function idsHidden(grants: Parameters<typeof account>[0], now = 1000): bigint[] {
  return hideable(account(grants), now).map(({ id }) => id - 1000n)
}

test('a grant is hidden thirty days after its end by expiry or revocation, to the millisecond', () => {
  const [expired, revoked] = [{ expiresAt: 1000 }, { expiresAt: null, revokedAt: 1000 }]
  assert.deepEqual(idsHidden([expired, revoked], 999 + grantSettledAfterMs), [])
  assert.deepEqual(idsHidden([expired, revoked], 1000 + grantSettledAfterMs), [0n, 1n])
})

test('a drained grant of once is hidden while another one keeps access live to no earlier end', () => {
  const drained = { remaining: 0n, expiresAt: 5000 }
  assert.deepEqual(idsHidden([drained, { expiresAt: 5000 }]), [0n])
  assert.deepEqual(idsHidden([drained, { expiresAt: null }]), [0n])
  for (const other of [
    { expiresAt: 4999 },
    { effectiveAt: 1001 },
    { entityId: 'a' },
    { expiresAt: 9000, revokedAt: 4999 },
  ]) {
    assert.deepEqual(idsHidden([drained, other]), [], JSON.stringify(other))
  }
})

test('of grants that are all drained one stays, and so does what is unlimited, recurring, without units or an entity’s only one', () => {
  const drained = { remaining: 0n }
  assert.deepEqual(idsHidden([drained, drained, drained]), [0n, 1n])
  const recurring = { ...drained, cycle: { unit: 'minute' as const, count: 1, anchor: 0 } }
  const kept = [
    recurring,
    { amount: 0n },
    { amount: 0n, unlimited: true },
    { ...drained, entityId: 'a', expiresAt: null },
  ]
  assert.deepEqual(idsHidden([{ expiresAt: 9000 }, ...kept.slice(0, 3)]), [])
  assert.deepEqual(idsHidden([{ expiresAt: 9000 }, ...kept.slice(3)]), [])
})

test('a grant whose last periods still have units to roll over stays until they are written', () => {
  const rolling = grant({
    cycle: { unit: 'day', count: 1, anchor: 0 },
    expiresAt: 10 * 86_400_000,
    rollover: { max: null, periods: null },
  })
  const late = 11 * 86_400_000 + grantSettledAfterMs
  assert.equal(hideable(account([rolling]), late).length, 0)
  assert.equal(hideable(account([{ ...rolling, periodNo: 9n }]), late).length, 1)
})

test('sweeping never changes an answer, nor when access is live, whatever is spent and revoked before and after', () => {
  const far = fc.constantFrom(0, 0, grantSettledAfterMs)
  const revocations = fc.array(fc.record({ after: fc.nat(14), which: fc.nat(9), later: fc.boolean() }), {
    maxLength: 3,
  })
  fc.assert(
    fc.property(
      ...[worlds(grantTerms()), timedCommands, revocations, fc.nat(14), far, entities, instants],
      (world, sequence, revokes, sweepAfter, leap, asks, at) => {
        const [plain, swept] = [new Ledger(world), new Ledger(world)]
        const hidden = new Map<bigint, Account['grants']>()
        for (const [i, { entity, command, ...timed }] of sequence.entries()) {
          const now = timed.at + (i >= sweepAfter ? leap : 0)
          assert.deepEqual(swept.run(now, entity, command), plain.run(now, entity, command))
          if (i >= sweepAfter) sweep(swept, hidden, now)
          for (const { which, later } of revokes.filter(({ after }) => after === i))
            revoke(plain, swept, hidden, { which, later })
        }
        const now = at + leap
        const [one, other] = [plain.state(now, asks), swept.state(now, asks)]
        for (const units of [1n, 5n, 20n]) assert.deepEqual(decideAccess(other, units), decideAccess(one, units))
        for (const [id, { grants }] of plain.accounts) {
          const shown = [...(swept.accounts.get(id)?.grants ?? []), ...(hidden.get(id) ?? [])]
          assert.deepEqual(accessIntervals(shown, one.now), accessIntervals(grants, one.now))
        }
      },
    ),
    { numRuns: 400 },
  )
})

function sweep(ledger: Ledger, hidden: Map<bigint, Account['grants']>, now: number): void {
  for (const each of ledger.accounts.values()) {
    const over = hideable(each, Math.max(now, each.lastAt))
    hidden.set(each.id, [...(hidden.get(each.id) ?? []), ...over])
    each.grants = each.grants.filter((grant) => !over.includes(grant))
  }
}

/** As the store does it: what has not ended is looked at, and shown again from then on. */
function revoke(
  plain: Ledger,
  swept: Ledger,
  hidden: Map<bigint, Account['grants']>,
  { which, later }: { which: number; later: boolean },
): void {
  for (const [id, one] of plain.accounts) {
    const chosen = one.grants[which % Math.max(one.grants.length, 1)]
    const other = swept.accounts.get(id)
    if (!chosen || !other) continue
    other.grants.push(...(hidden.get(id) ?? []))
    hidden.delete(id)
    const mine = other.grants.find((grant) => grant.effectiveAt === chosen.effectiveAt && grant.id === chosen.id)
    if (!mine) continue
    const when = { now: one.lastAt, at: later ? one.lastAt + 60_000 : null }
    plain.write(decideRevoke(one, chosen.id, when))
    swept.write(decideRevoke(other, mine.id, when))
  }
}
