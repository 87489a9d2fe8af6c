import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import pino from 'pino'
import { Pool } from '../../src/db/pool.ts'
import { Catalogues, type ConsumeAnswer, type ConsumeCommand, ledgerSettings } from '../../src/entitlements/index.ts'
import { attempt, attemptLocked, held } from '../../src/entitlements/ledger/consume-attempt.ts'
import { Changed } from '../../src/entitlements/ledger/slot.ts'
import { systemClock as clock } from '../../src/kernel/clock.ts'
import { Refusal } from '../../src/kernel/errors.ts'
import { Directory, type Scope } from '../../src/tenancy/index.ts'
import fc from '../harness/random.ts'
import { findings, openLedger } from './world.ts'

const ledger = await openLedger()
after(() => ledger[Symbol.asyncDispose]())
const { pool, database } = ledger
const directory = await Directory.open({ pool, url: database.url, clock, log: pino({ level: 'silent' }) })
after(() => directory[Symbol.asyncDispose]())
const options = { catalogues: new Catalogues(pool, directory), tombstoneKey: Buffer.alloc(32, 7) }
const hot = new Pool(database.url, { name: 'usage', max: 1, pipeline: true, settings: ledgerSettings })
after(() => hot[Symbol.asyncDispose]())

const commands = fc.array(
  fc.record({
    distinctId: fc.constantFrom('a', 'a', 'also a', 'b', 'nobody'),
    featureKey: fc.constantFrom('exports', 'exports', 'chat', 'chat', 'credits', 'pro', 'endless', 'unknown'),
    operationId: fc.integer({ min: 1, max: 12 }).map(String),
    quantity: fc.bigInt(1n, 6n),
    mode: fc.constantFrom('consume', 'consume', 'set_usage'),
    entityId: fc.constantFrom(null, null, 'seat'),
  }),
  { maxLength: 24 },
)
type Sent = typeof commands extends fc.Arbitrary<(infer T)[]> ? T : never

/** Two customers, one with two ids, with shared, recurring, entity's and unlimited grants, and a credit system over two Features. */
async function world(): Promise<Scope> {
  const scope = await ledger.scope()
  const exports = await ledger.feature(scope)
  const chat = await ledger.feature(scope, 'chat')
  const endless = await ledger.feature(scope, 'endless')
  const pro = await ledger.feature(scope, 'pro', { type: 'boolean' })
  const creditCosts = [
    { feature: 'chat', cost: 2 },
    { feature: 'exports', cost: '1.5' },
  ]
  const credits = await ledger.feature(scope, 'credits', { type: 'creditSystem', creditCosts })
  const monthAgo = clock.now() - 45 * 24 * 3600_000
  for (const name of ['a', 'b']) {
    const id = await ledger.customer(scope, name)
    const give = (feature: typeof exports, allowance: number, terms: object = {}) =>
      ledger.grant(scope, id, feature, allowance, { source: source(name, feature.key, allowance), ...terms })
    await give(exports, 9)
    // Its second month has begun: the first spend writes the reset, with what rolls over.
    await give(exports, 5, { interval: 'month', startsAt: monthAgo, rollover: { max: 3n, periods: 2 } })
    await give(exports, 4, { entityId: 'seat' })
    await give(credits, 20)
    await give(pro, 0, { allowance: null })
    await give(endless, 0, { allowance: null, unlimited: true })
    if (name === 'b') await give(chat, 2)
    if (name === 'a') {
      await pool.query(
        `insert into customer_alias (scope_id, distinct_id, customer_id, since_pos, first_seen_at) values ($1, 'also a', $2, 0, now())`,
        [scope.scopeId, id],
      )
    }
  }
  await directory.refresh()
  return scope
}

const source = (customer: string, feature: string, allowance: number) =>
  ({ origin: 'manual', ref: `${customer}:${feature}:${allowance}`, rank: 0, productId: null }) as const

type Attempt = typeof attempt
const byVersion: Attempt = attempt
const underLocks: Attempt = async (...args) => {
  const answers = await attemptLocked(...args, { wait: false })
  return answers.map((answer) => {
    assert.ok(answer !== held)
    return answer
  })
}

/** What the callers were told, times apart. */
async function send(scope: Scope, batches: Sent[][], decide: Attempt): Promise<unknown[]> {
  const replies: unknown[] = []
  for (const batch of batches.filter(({ length }) => length > 0)) {
    const app = { ...scope, keyId: 'key', appId: 'app', appName: 'App', platform: 'ios' } as const
    const sent: ConsumeCommand[] = batch.map((command) => ({ scope: app, ...command }))
    replies.push(...(await hot.connected((client) => settled(() => decide(options, client, sent)))).map(told))
  }
  return replies
}

/** An account that a spend needs is made apart, and then everything is decided again. */
async function settled<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (!(error instanceof Changed)) throw error
    return settled(work)
  }
}

function told(answer: ConsumeAnswer | Refusal): unknown {
  return answer instanceof Refusal ? answer.code : { ...answer, occurredAt: typeof answer.occurredAt }
}

/** Every row of the ledger by names instead of numbers, without times. */
async function tables({ scopeId }: Scope): Promise<unknown> {
  const rows = (text: string) => pool.query(text, [scopeId])
  const account = `(select (select min(distinct_id) from customer_alias where scope_id = $1 and customer_id = a.customer_id)
      || ' ' || f.key from account a join feature f on f.id = a.feature_id where a.id =`
  return {
    operations: await rows(
      `select operation_id, feature_key, entity_id, mode, quantity, http_status, accepted, code, balance, unlimited, active,
         account_version, (select min(distinct_id) from customer_alias c where c.scope_id = $1 and c.customer_id = o.customer_id)
       from operation o where scope_id = $1 order by operation_id`,
    ),
    accounts: await rows(
      `select ${account} x.id) as name, x.used_total, x.version from account x where scope_id = $1 order by name`,
    ),
    entities: await rows(
      `select ${account} e.account_id) as name, e.entity_id, e.used_total
       from account_entity e join account x on x.id = e.account_id where x.scope_id = $1 order by name, entity_id`,
    ),
    grants: await rows(
      `select regexp_replace(source_ref, '^rollover:\\d+', 'rollover') as ref, amount, remaining, period_no
       from ledger_grant where scope_id = $1 order by account_id, id`,
    ),
    entries: await rows(
      `select ${account} e.account_id) as name, e.version, e.line, e.kind, e.delta, e.remaining_after, e.operation_id, e.period_no,
         (select regexp_replace(source_ref, '^rollover:\\d+', 'rollover') from ledger_grant where id = e.grant_id) as ref
       from entry e where e.scope_id = $1 order by name, e.version, e.line`,
    ),
    refills: await rows(
      `select g.source_ref, r.period_no, r.lapsed, r.rolled from refill r join ledger_grant g on g.id = r.grant_id
       where g.scope_id = $1 order by 1, 2`,
    ),
  }
}

test('any partition of a command sequence into batches gives the same replies and tables as one by one, by version and under locks', async () => {
  let told = 0
  await fc.assert(
    fc.asyncProperty(commands, fc.array(fc.nat(24), { maxLength: 5 }), async (sequence, cuts) => {
      const [alone, together, locked] = [await world(), await world(), await world()]
      const singles = sequence.map((command) => [command])
      const bounds = [0, ...cuts.toSorted((a, b) => a - b), sequence.length]
      const batches = bounds.slice(1).map((end, i) => sequence.slice(bounds[i], end))
      const replies = await send(alone, singles, byVersion)
      assert.deepEqual(await send(together, batches, byVersion), replies)
      assert.deepEqual(await send(locked, batches, underLocks), replies)
      const rows = await tables(alone)
      assert.deepEqual(await tables(together), rows)
      assert.deepEqual(await tables(locked), rows)
      for (const scope of [alone, together, locked]) assert.deepEqual(await findings(pool, scope), [])
      told += replies.length
    }),
    { numRuns: 25 },
  )
  assert.ok(told > 50)
})
