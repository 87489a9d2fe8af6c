import assert from 'node:assert/strict'
import test from 'node:test'
import fc from '../../../test/harness/random.ts'
import type { UsageCommand } from '../types.ts'
import { live } from './grant.ts'
import { entities, grantTerms, horizonMs, instants, spentTerms, timedCommands, worlds } from './testing/arbitrary.ts'
import { account, feature, grant } from './testing/build.ts'
import { Ledger } from './testing/ledger.ts'
import { Model } from './testing/model.ts'

const consume = (quantity: bigint): UsageCommand => ({ mode: 'consume', quantity })

test('the ledger decides as the model that shares nothing with it, command by command', () => {
  fc.assert(
    fc.property(worlds(grantTerms()), timedCommands, (world, steps) => {
      const [ledger, model] = [new Ledger(world), new Model(world)]
      for (const { at, entity, command } of steps.toSorted((a, b) => a.at - b.at)) {
        const { occurredAt, ...decision } = ledger.run(at, entity, command)
        assert.deepEqual(decision, model.consume(at, entity, command.mode, Number(command.quantity)))
        assert.equal(occurredAt, at)
      }
      assert.deepEqual(counters(ledger), model.counters)
      assert.deepEqual(holdings(ledger, horizonMs), model.holdings(horizonMs))
    }),
    { numRuns: 300 },
  )
})

/** By entity, as the model keeps them. */
function counters(ledger: Ledger): Record<string, number> {
  const own = ledger.accounts.get(1n)
  const used = [
    ['null', own?.used ?? 0n] as const,
    ...[...(own?.entities ?? [])].map(([key, each]) => [key, each.used] as const),
  ]
  return Object.fromEntries(used.filter(([, units]) => units > 0n).map(([key, units]) => [key, Number(units)]))
}

function holdings(ledger: Ledger, now: number): string[] {
  ledger.standing(now)
  const grants = [...ledger.accounts.values()].flatMap((each) => each.grants)
  return grants
    .filter((each) => !each.unlimited && each.remaining > 0n && live(each, now))
    .map(({ id, rolledFrom, expiresAt, revokedAt, remaining }) => {
      const until = Math.min(expiresAt ?? 1e15, revokedAt ?? 1e15)
      return `${rolledFrom === null ? id : `from ${rolledFrom}`} until ${until}: ${remaining}`
    })
    .toSorted()
}

test('each counter is the sum of the accepted increases and never falls', () => {
  fc.assert(
    fc.property(worlds(grantTerms()), timedCommands, (world, steps) => {
      const ledger = new Ledger(world)
      const sums = new Map<string | null, bigint>()
      for (const { at, entity, command } of steps) {
        const before = sums.get(entity) ?? 0n
        const { accepted } = ledger.run(at, entity, command)
        const increase = command.mode === 'consume' ? command.quantity : command.quantity - before
        if (accepted && increase > 0n) sums.set(entity, before + increase)
        const own = ledger.accounts.get(1n)
        for (const each of [null, 'a', 'b']) {
          const used = each === null ? own?.used : own?.entities.get(each)?.used
          assert.equal(used ?? 0n, sums.get(each) ?? 0n)
        }
        for (const each of world.pools) assert.equal(ledger.accounts.get(each.account.id)?.used, 0n)
      }
    }),
  )
})

test('while an unlimited grant is live no finite grant changes, and when it has ended it is as if it had never been', () => {
  fc.assert(
    fc.property(worlds(grantTerms({ unlimited: false })), timedCommands, instants, instants, (world, steps, a, b) => {
      const [begin, end] = [Math.min(a, b), Math.max(a, b)]
      const [during, without] = [new Ledger(world), new Ledger(world)]
      const wide = grant({ id: 999n, unlimited: true, amount: 0n, effectiveAt: begin, expiresAt: end })
      during.accounts.get(1n)?.grants.push(wide)
      for (const { at, entity, command } of steps.toSorted((x, y) => x.at - y.at)) {
        const consumed = { ...command, mode: 'consume' as const } // set_usage would see the counter
        if (at >= begin && at < end) {
          const written = during.written.length
          assert.equal(during.run(at, entity, consumed).unlimited, true)
          assert.ok(during.written.slice(written).every((change) => change.kind === 'used'))
        } else {
          assert.deepEqual(during.run(at, entity, consumed), without.run(at, entity, consumed))
        }
      }
      assert.deepEqual(holdings(during, horizonMs), holdings(without, horizonMs))
    }),
  )
})

test('spending n and then m equals spending n + m, when both fit', () => {
  const own = fc.array(spentTerms({ recurring: false, unlimited: false }), { maxLength: 4 })
  fc.assert(
    fc.property(own, entities, instants, fc.bigInt(1n, 9n), fc.bigInt(1n, 9n), (grants, entity, now, n, m) => {
      const world = { feature: feature(), own: account(grants), pools: [] }
      const [twice, once] = [new Ledger(world), new Ledger(world)]
      if (!once.run(now, entity, consume(n + m)).accepted) return
      twice.run(now, entity, consume(n))
      twice.run(now, entity, consume(m))
      assert.deepEqual(twice.standing(now), once.standing(now))
    }),
  )
})
