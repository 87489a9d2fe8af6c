import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { applyChanges } from '../../src/entitlements/engine/apply.ts'
import { live } from '../../src/entitlements/engine/grant.ts'
import { settle } from '../../src/entitlements/engine/settle.ts'
import { entities, grantTerms, type World, worlds } from '../../src/entitlements/engine/testing/arbitrary.ts'
import { type Answer, Model } from '../../src/entitlements/engine/testing/model.ts'
import type { ConsumeAnswer } from '../../src/entitlements/index.ts'
import type { Account, Feature, UsageCommand } from '../../src/entitlements/types.ts'
import { must } from '../../src/kernel/assert.ts'
import { systemClock as clock } from '../../src/kernel/clock.ts'
import { type Scope, touchCatalogue } from '../../src/tenancy/index.ts'
import fc from '../harness/random.ts'
import { type Command, openLedger, untilAnswered } from './world.ts'

const ledger = await openLedger()
after(() => ledger[Symbol.asyncDispose]())
const { pool } = ledger
const [one, two] = await Promise.all([ledger.spender(), ledger.spender()])
after(async () => {
  for (const spender of [one, two]) await spender[Symbol.asyncDispose]()
})

/** Grants begin, end and reset every 20 s, give or take a millisecond; a run is over before the next of these. */
const gridMs = 20_000
const afterGridMs = 3000

/** Small enough that many are accepted. */
const commands: fc.Arbitrary<UsageCommand> = fc.oneof(
  fc.record({ mode: fc.constant('consume'), quantity: fc.bigInt(1n, 3n) }),
  fc.record({ mode: fc.constant('set_usage'), quantity: fc.bigInt(1n, 12n) }),
)
const steps = fc.array(
  fc.record({ customer: fc.nat(2), entity: entities, command: commands, together: fc.boolean(), other: fc.boolean() }),
  { minLength: 20, maxLength: 40 },
)
const customers = fc.tuple(...Array.from({ length: 3 }, () => worlds(grantTerms())))
/** How much of the grants' time has passed: clocks of databases can't be set. */
const passed = fc.nat(60).map((step) => step * gridMs + afterGridMs)

interface Standing {
  scope: Scope
  /** The instant that the worlds call 0. */
  base: number
  models: Model[]
  /** What the model calls a grant. */
  names: Map<bigint, string>
}

/** The worlds as rows: customers `c0`, `c1` …, each with a Feature `f0`, `f1` … and its credit systems. */
async function stand(made: readonly World[], since: number): Promise<Standing> {
  const scope = await ledger.scope()
  const base = clock.now() - since
  const names = new Map<bigint, string>()
  await pool.transaction(async (tx) => {
    for (const [i, world] of made.entries()) {
      const customerId = await ledger.customer(scope, `c${i}`)
      const feature = async ({ type, scale }: Feature, key: string) => {
        const [row] = await tx.query<{ id: number }>(
          `insert into feature (scope_id, public_id, key, name, type, scale, status)
           values ($1, $2, $3, $3, $4, $5, 'published') returning id`,
          [scope.scopeId, `${scope.scopeId} ${key}`, key, type, scale],
        )
        return must(row, 'it was made').id
      }
      const account = async (featureId: number, { grants }: Account) => {
        const [row] = await tx.query<{ id: bigint }>(
          'insert into account (scope_id, customer_id, feature_id) values ($1, $2, $3) returning id',
          [scope.scopeId, customerId, featureId],
        )
        for (const grant of grants) {
          const at = (ms: number | null) => (ms === null ? null : base + ms)
          const [{ id } = { id: 0n }] = await tx.query<{ id: bigint }>(
            `insert into ledger_grant (scope_id, account_id, feature_id, entity_id, source_ref, origin, rank, unlimited, amount,
               remaining, effective_at_ms, expires_at_ms, paid_until_ms, cycle_unit, cycle_count, anchor_ms, rollover,
               revoked_at_ms, created_at_ms)
             values ($1, $2, $3, $4, $5, 'manual', $6, $7, $8, $8, $9, $10, $11, $12, $13, $9, $14, $15, $16) returning id`,
            [
              ...[scope.scopeId, row?.id, featureId, grant.entityId, `c${i} ${grant.id}`, grant.rank, grant.unlimited],
              ...[grant.amount, base + grant.effectiveAt, at(grant.expiresAt), at(grant.paidUntil), grant.cycle?.unit],
              ...[grant.cycle?.count ?? 1, rolloverOf(grant.rollover), at(grant.revokedAt), base + grant.createdAt],
            ],
          )
          await tx.query(
            `insert into entry (at_ms, scope_id, account_id, version, line, grant_id, period_no, kind, delta, remaining_after)
             values ($1, $2, $3, 0, 0, $4, 0, 'grant', $5, $5)`,
            [base, scope.scopeId, row?.id, id, grant.amount],
          )
          names.set(id, String(grant.id))
        }
      }
      const own = await feature(world.feature, `f${i}`)
      if (world.own.grants.length > 0) await account(own, world.own)
      for (const [n, pooled] of world.pools.entries()) {
        const credits = await feature(pooled.feature, `f${i} credits ${n}`)
        await tx.query('insert into feature_cost values ($1, $2, $3, $4)', [
          credits,
          own,
          pooled.cost.credits,
          pooled.cost.per,
        ])
        await account(credits, pooled.account)
      }
    }
    await touchCatalogue(tx, scope.scopeId)
  })
  return { scope, base, names, models: made.map((world) => new Model(world)) }
}

function rolloverOf(rollover: { max: bigint | null; periods: number | null } | null): string | null {
  return rollover && JSON.stringify({ max: rollover.max?.toString() ?? null, periods: rollover.periods })
}

function decisionOf({ accepted, code, balance, unlimited, active }: ConsumeAnswer): Answer {
  return { accepted, code, balance, unlimited, active }
}

/** Each grant holds what its entries say, after every step. */
async function assertEntered({ scope }: Standing): Promise<void> {
  const wrong = await pool.query(
    `select g.id, g.remaining, sum(e.delta) as entered
     from ledger_grant g left join entry e on e.grant_id = g.id
     where g.scope_id = $1 group by g.id having g.remaining is distinct from sum(e.delta)`,
    [scope.scopeId],
  )
  assert.deepEqual(wrong, [])
}

/** What is left of each grant once everything due is done, as the model tells it. */
async function assertHoldings({ scope, base, models, names }: Standing): Promise<void> {
  for (const [i, model] of models.entries()) {
    const { now, accounts } = await one.standing({ scope, distinctId: `c${i}` })
    const held = [...accounts.values()].flatMap((account) => {
      for (const entity of [null, 'a', 'b'])
        applyChanges(new Map([[account.id, account]]), settle(account, entity, now))
      return account.grants
        .filter((grant) => !grant.unlimited && grant.remaining > 0n && live(grant, now))
        .map(({ id, rolledFrom, expiresAt, revokedAt, remaining }) => {
          const until = Math.min(
            expiresAt === null ? 1e15 : expiresAt - base,
            revokedAt === null ? 1e15 : revokedAt - base,
          )
          const name = rolledFrom === null ? names.get(id) : `from ${names.get(rolledFrom)}`
          return `${name} until ${until}: ${remaining}`
        })
    })
    assert.deepEqual(
      held.toSorted((a, b) => (a < b ? -1 : 1)),
      model.holdings(now - base),
    )
  }
}

test('the store decides every schedule as the model that shares nothing with it, and each grant holds what its entries say', async () => {
  let accepted = 0
  await fc.assert(
    fc.asyncProperty(customers, steps, passed, async (made, schedule, since) => {
      const standing = await stand(made, since)
      const { scope, base, models } = standing
      let running: Promise<void>[] = []
      for (const { customer, entity, command, together } of schedule) {
        const sent = { scope, distinctId: `c${customer}`, feature: `f${customer}`, entity, ...command }
        // Sent before the next one, and so decided before it: the customer's commands keep their order.
        const answering = one.consume({ ...sent, quantity: Number(command.quantity) })
        running.push(
          answering.then((answer) => {
            const at = Number(answer.occurredAt) - base
            const expected = must(models[customer], 'three').consume(at, entity, command.mode, Number(command.quantity))
            assert.deepEqual(decisionOf(answer), expected)
            if (answer.accepted) accepted++
          }),
        )
        if (together) continue
        await Promise.all(running)
        running = []
        await assertEntered(standing)
      }
      await Promise.all(running)
      await assertEntered(standing)
      await assertHoldings(standing)
      assert.ok(clock.now() - base - since < gridMs - afterGridMs - 1, 'too slow to mean anything')
    }),
    { numRuns: 25 },
  )
  assert.ok(accepted > 30)
})

test('any concurrent history through two processes is one that the model explains in the order of account versions', async () => {
  await fc.assert(
    fc.asyncProperty(customers, steps, passed, async (made, schedule, since) => {
      const standing = await stand(made, since)
      const { scope, base, models } = standing
      const history = await Promise.all(
        schedule.map(async ({ customer, entity, command, other }, i) => {
          const sent: Command = {
            ...{ scope, distinctId: `c${customer}`, feature: `f${customer}`, entity, mode: command.mode },
            ...{ quantity: Number(command.quantity), operationId: `op ${i}` },
          }
          return { customer, entity, command, answer: await untilAnswered((other ? two : one).consume, sent), i }
        }),
      )
      const rows = await pool.query<{ operation_id: string; version: bigint; changed: boolean }>(
        `select o.operation_id, o.account_version as version,
           exists (select from entry e where e.operation_id = o.operation_id and e.scope_id = o.scope_id) as changed
         from operation o where scope_id = $1`,
        [scope.scopeId],
      )
      const saved = new Map(rows.map((row) => [row.operation_id, row]))
      assert.equal(saved.size, schedule.length)
      // Of those that stand at one version the one that made it comes first; the others changed nothing.
      const placed = history.map((entry) => ({ ...entry, place: must(saved.get(`op ${entry.i}`), 'it was saved') }))
      const order = placed.toSorted(
        (a, b) => Number(a.place.version - b.place.version) || Number(b.place.changed) - Number(a.place.changed),
      )
      for (const { customer, entity, command, answer } of order) {
        const at = Number(answer.occurredAt) - base
        const expected = must(models[customer], 'three').consume(at, entity, command.mode, Number(command.quantity))
        assert.deepEqual(decisionOf(answer), expected)
      }
      await assertEntered(standing)
      await assertHoldings(standing)
    }),
    { numRuns: 20 },
  )
})
