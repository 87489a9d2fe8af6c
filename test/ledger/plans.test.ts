import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { after, test } from 'node:test'
import pino from 'pino'
import { createCustomerIdHint, createFindCustomer } from '../../src/customers/index.ts'
import { Pool } from '../../src/db/pool.ts'
import {
  attachProduct,
  Catalogues,
  type ConsumeCommand,
  createCheck,
  createProduct,
  createStanding,
  ledgerSettings,
} from '../../src/entitlements/index.ts'
import { attempt, attemptLocked } from '../../src/entitlements/ledger/consume-attempt.ts'
import { Changed } from '../../src/entitlements/ledger/slot.ts'
import { selectOffersOf } from '../../src/entitlements/ledger/state-store.ts'
import { selectEntities } from '../../src/entitlements/ledger/usage-store.ts'
import { appendEvents, appendSettings, notifyLanes } from '../../src/events/append-store.ts'
import { ensurePartitions, normalise } from '../../src/events/index.ts'
import { systemClock as clock } from '../../src/kernel/clock.ts'
import { randomText } from '../../src/kernel/ids.ts'
import { Directory, type Scope } from '../../src/tenancy/index.ts'
import { keepUnanalysed, nodesOf, plansOn } from '../harness/plans.ts'
import { openLedger } from './world.ts'

const ledger = await openLedger()
after(() => ledger[Symbol.asyncDispose]())
const { pool, database } = ledger
const tombstoneKey = Buffer.alloc(32, 7)
/** `PLAN_ROWS=1000000 npm test test/ledger/plans.test.ts` looks at the tables of a large installation; it takes minutes. */
const rows = Number(process.env.PLAN_ROWS ?? 20_000)

/** The stores of the hot verbs. */
const hot = [
  'entitlements/ledger/state-store.ts',
  'entitlements/ledger/usage-store.ts',
  'entitlements/ledger/usage-write-store.ts',
  'entitlements/ledger/standing-store.ts',
  'customers/find-store.ts',
  'customers/hint-store.ts',
  'events/append-store.ts',
]

/** By the names they are prepared under. */
function statementsOf(path: string): string[] {
  const text = readFileSync(new URL(`../../src/${path}`, import.meta.url), 'utf8')
  return [...text.matchAll(/\bname: '(\w+)'/g)].map(([, name]) => name ?? '')
}

/** Tables as they are after a bulk load and before anybody analysed them. */
async function fill({ scopeId }: Scope, featureId: number): Promise<void> {
  await keepUnanalysed(pool)
  const each = (select: string) => `select ${select} from generate_series(1, ${rows}) n`
  const ofAccount = (select: string) => `select ${select} from account where scope_id = ${scopeId}`
  const customer = `md5('c' || n)::uuid`
  const load: [into: string, select: string][] = [
    ['customer (scope_id, id, created_at)', each(`${scopeId}, ${customer}, now()`)],
    [
      'customer_alias (scope_id, distinct_id, customer_id, since_pos, first_seen_at)',
      each(`${scopeId}, 'c' || n, ${customer}, 0, now()`),
    ],
    ['customer_tombstone (scope_id, id_hash)', each(`${scopeId}, sha256(n::text::bytea)`)],
    ['account (scope_id, customer_id, feature_id)', each(`${scopeId}, ${customer}, ${featureId}`)],
    ['account_entity (account_id, entity_id)', ofAccount(`id, 'e'`)],
    [
      `ledger_grant (scope_id, account_id, feature_id, source_ref, origin, amount, remaining, effective_at_ms, anchor_ms,
         created_at_ms)`,
      ofAccount(`scope_id, id, feature_id, 'bulk' || id, 'manual', 9, 9, 0, 0, 0`),
    ],
    [
      `entity_terms (scope_id, account_id, feature_id, source_ref, origin, rank, template, effective_at_ms, created_at_ms,
         max_entities)`,
      ofAccount(
        `scope_id, id, feature_id, 'bulk' || id, 'product', 0, '{"allowance": 5, "unlimited": false, "interval": null, "rollover": null}', 0, 0, 1`,
      ),
    ],
    ['refill (grant_id, period_no, lapsed, rolled, at_ms)', 'select id, 1, 0, 0, 0 from ledger_grant'],
    [
      `operation (scope_id, kind, operation_id, customer_id, feature_key, mode, quantity, http_status, accepted, code,
         feature_type, unlimited, active, occurred_at_ms, account_version)`,
      each(`${scopeId}, 0, 'bulk' || n, ${customer}, 'exports', 0, 1, 200, true, 'consumed', 1, false, true, 0, 0`),
    ],
    [
      'entry (at_ms, scope_id, account_id, version, line, grant_id, period_no, kind, delta, remaining_after)',
      ofAccount(`extract(epoch from now()) * 1000, scope_id, id, 0, 0, id, 0, 'grant', 1, 1`),
    ],
  ]
  for (const [into, select] of load) await pool.query(`insert into ${into} ${select}`)
}

test('every hot statement is a chain of index look-ups on large tables that nobody has analysed', async () => {
  await using stack = new AsyncDisposableStack()
  await ensurePartitions(pool)
  const scope = await ledger.scope()
  const exports = await ledger.feature(scope)
  const creditCosts = [{ feature: 'exports', cost: 2 }]
  const credits = await ledger.feature(scope, 'credits', { type: 'creditSystem', creditCosts })
  await fill(scope, exports.id)

  const { url } = database
  const directory = stack.use(await Directory.open({ pool, url, clock, log: pino({ level: 'silent' }) }))
  const catalogues = new Catalogues(pool, directory)
  const connection = { max: 1, pipeline: true, settings: ledgerSettings }
  const usage = stack.use(new Pool(url, { name: 'test usage', ...connection }))
  const reads = { pool: usage, catalogues, tombstoneKey, clock }
  const app = { ...scope, keyId: 'key', appId: 'app', appName: 'App', platform: 'ios' } as const
  const options = { catalogues, tombstoneKey }
  const send = async (distinctId: string, part: Partial<ConsumeCommand> = {}, wait?: boolean): Promise<unknown> => {
    const common = { scope: app, featureKey: 'exports', operationId: randomText(8), quantity: 1n, entityId: null }
    const command: ConsumeCommand = { ...common, mode: 'consume', distinctId, ...part }
    try {
      return await usage.connected((client) =>
        wait === undefined ? attempt(options, client, [command]) : attemptLocked(options, client, [command], { wait }),
      )
    } catch (error) {
      if (error instanceof Changed) return send(distinctId, part, wait)
      throw error
    }
  }

  // Everything that the verbs may have to ask or write.
  await createCheck(reads)({ scope: app, distinctId: 'c1', featureKey: 'exports', required: 1n, entityId: null })
  await createStanding(reads)({ scope, distinctId: 'c1' })
  await usage.connected((client) => selectEntities(client, [{ accountId: 1n, entityId: 'e' }]))
  await createCustomerIdHint({ pool: usage, clock })(scope, 'c1')
  await createFindCustomer({ pool: usage, clock })(scope, { distinctId: 'c1' })
  await send('c1', { entityId: 'new' })
  await send('nobody')
  await send('c2', {}, false)
  await send('c2', {}, true)
  const [a, b] = [await ledger.customer(scope, 'a'), await ledger.customer(scope, 'b')]
  await ledger.grant(scope, a, credits, 10)
  await send('a', { operationId: 'before' })
  await ledger.merge(scope, a, b)
  await send('a', { operationId: 'before' })
  const startsAt = clock.now() - 100 * 24 * 3600_000
  await ledger.grant(scope, b, exports, 10, { interval: 'month', startsAt, rollover: { max: null, periods: null } })
  await send('b')
  const grants = [{ feature: 'reports', allowance: 5, unlimited: false, interval: null, rollover: null }]
  await ledger.feature(scope, 'reports')
  await pool.transaction(async (tx) => {
    const templates = grants.map((template) => ({ ...template, entity_scoped: true, max_entities: 1 }))
    await createProduct(tx, scope, { key: 'team', name: 'Team', type: 'subscription', grants: templates, stores: [] })
    await attachProduct(tx, scope, { customerId: b, product: 'team', startsAt: null, expiresAt: null })
  })
  await directory.refresh()
  await send('b', { featureKey: 'reports', entityId: 'seat' })
  await usage.connected((client) => selectOffersOf(client, [1n], 'e'))
  const append = stack.use(new Pool(url, { name: 'test append', max: 1, settings: appendSettings }))
  await append.connected(async (client) => {
    const payload = { event: 'e', distinct_id: 'c1', uuid: crypto.randomUUID() }
    const normalised = normalise(payload, { receivedAt: clock.now(), trust: 'device' })
    assert.ok(normalised.kind === 'event')
    await appendEvents(client, tombstoneKey, [{ origin: app, stream: 'live', event: normalised.event }])
    await notifyLanes(client, [scope.scopeId])
  })

  const plans = new Map([...(await plansOn(usage)), ...(await plansOn(append))])
  const wanted = hot.flatMap(statementsOf)
  assert.ok(wanted.length > 15)
  assert.deepEqual(
    wanted.filter((name) => !plans.has(name)),
    [],
    'statements that were not reached',
  )
  for (const name of wanted) {
    const plan = plans.get(name)
    assert.ok(plan)
    for (const node of nodesOf(plan)) {
      const said = `${name}: ${node['Node Type']} on ${node['Relation Name']} ${JSON.stringify(node['Index Cond'])}`
      assert.doesNotMatch(node['Node Type'], /Seq Scan|Hash Join|Merge Join|Materialize/, said)
      if (!/Index/.test(node['Node Type'])) continue
      // By a key, not through the whole index nor through all that one scope has.
      assert.match(node['Index Cond'] ?? '', /=/, said)
      // The clock of a scope is one row.
      if (node['Relation Name'] !== 'test_clock') {
        assert.doesNotMatch(node['Index Cond'] ?? '', /^\(scope_id = [^()]*\)$/, said)
      }
    }
  }
})
