import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { Pool, type Tx } from '../../src/db/pool.ts'
import { enrolment, section, step, t0 } from '../../src/journeys/engine/testing/a-plan.ts'
import { enrol } from '../../src/journeys/enrol/enrol.ts'
import { consumeRows } from '../../src/journeys/intake/consume.ts'
import { deleteInbox, readRow, selectInbox } from '../../src/journeys/intake/inbox-store.ts'
import { journeySettings } from '../../src/journeys/store/journey-store.ts'
import { must } from '../../src/kernel/assert.ts'
import type { Scope } from '../../src/tenancy/index.ts'
import { keepUnanalysed } from '../harness/plans.ts'
import { newJourneyId, openJourneys } from './world.ts'

const world = await openJourneys()
after(() => world[Symbol.asyncDispose]())
const { pool, services } = world
const rows = Number(process.env.PLAN_ROWS ?? 100_000)
const customer = `md5('c' || n)::uuid`

/** As after a bulk load: one scope with as many customers, each in a journey that waits, and an inbox as long. */
async function fill({ scopeId }: Scope, like: string): Promise<void> {
  const [one] = await pool.query<{ columns: string }>(
    `select string_agg(column_name, ', ') as columns
     from information_schema.columns
     where table_name = 'journey' and column_name not in ('scope_id', 'id', 'customer_id')`,
  )
  const { columns } = must(one, 'the table has columns')
  const journey = `md5('j' || n)::uuid`
  const load: [into: string, select: string][] = [
    ['customer (scope_id, id, created_at)', `${scopeId}, ${customer}, now()`],
    [`journey (scope_id, id, customer_id, ${columns})`, `${scopeId}, ${journey}, ${customer}, ${columns}`],
    [
      'journey_subscription (scope_id, customer_id, event_name, journey_id)',
      `${scopeId}, ${customer}, 'paid', ${journey}`,
    ],
    [
      'journey_occurrence (scope_id, app_id, experience_id, customer_id, key, status, reason, at_ms)',
      `${scopeId}, 'app_1', 1, ${customer}, 'api:bulk', 'ineligible', 'frequency', 1`,
    ],
    ['experience_enrolment (scope_id, experience_id, customer_id, count)', `${scopeId}, 1, ${customer}, 1`],
    [
      'journey_inbox (scope_id, customer_id, pos, n, kind, received_at_ms, body)',
      `${scopeId}, ${customer}, n, 0, 'touched', 1, '{"kind":"touched"}'`,
    ],
    ['customer_rev (scope_id, customer_id, rev)', `${scopeId}, ${customer}, 1`],
  ]
  for (const [into, select] of load) {
    const from = into.startsWith('journey (') ? `, (select * from journey where id = '${like}') j` : ''
    await pool.query(`insert into ${into} select ${select} from generate_series(1, ${rows}) n${from}`)
  }
}

/** Rows that the work looked at, by table, in whatever way. */
async function readBy(through: Pool, work: (tx: Tx) => Promise<void>): Promise<Map<string, number>> {
  return through.transaction(async (tx) => {
    await work(tx)
    const read = await tx.query<{ name: string; n: bigint }>(
      'select relname as name, seq_tup_read + idx_tup_fetch as n from pg_stat_xact_user_tables where seq_tup_read + idx_tup_fetch > 0',
    )
    return new Map(read.map(({ name, n }) => [name, Number(n)]))
  })
}

test('inbox and starts read what is of their customers, however much there is, before and after tables are analysed', async () => {
  await keepUnanalysed(pool)
  const scope = await world.scope()
  const plan = await world.plan(scope, {
    entry: 'w',
    sections: { offer: section('offer') },
    steps: {
      w: step(
        { type: 'wait_for_event', eventName: 'paid', trust: 'any', timeoutMs: 1000 },
        { matched: 'offer', timeout: null },
      ),
    },
  })
  const like = await world.start(scope, plan, await world.customer(scope), t0)
  await fill(scope, like)
  await using own = new Pool(world.database.url, { name: 'test plans', max: 1, settings: journeySettings })
  for (const state of ['before', 'after']) {
    if (state === 'after') await pool.query('analyze')
    const consumed = await readBy(own, async (tx) => {
      const waiting = await selectInbox(tx, scope, { now: t0 + 10, limit: 50 })
      assert.equal(waiting.length, 50)
      const event = {
        ...{ kind: 'event' as const, uuid: crypto.randomUUID(), name: 'paid', distinctId: 'u', appId: 'app_1' },
        ...{
          at: t0 + 5,
          receivedAt: t0 + 5,
          trust: 'device' as const,
          fact: false,
          live: true,
          origin: null,
          properties: {},
        },
      }
      const told = waiting.map((row) => ({ ...readRow(row), body: event }))
      assert.equal((await consumeRows(tx, scope, told, t0 + 10, services)).length, 50)
      await deleteInbox(tx, scope, waiting)
    })
    const candidates = Array.from({ length: 20 }, (_, i) => i).map((i) => ({
      ...{ appId: 'app_1', plan, state: 'live' as const, by: 'api' as const, at: t0, contextHash: null },
      ...{ occurrence: `api:${state}${i}`, context: enrolment({ journeyId: newJourneyId() }).context },
    }))
    const ids = await pool.query<{ id: string }>(`select ${customer} as id from generate_series(501, 520) n`)
    const started = await readBy(own, async (tx) => {
      const starts = await enrol(
        tx,
        scope,
        candidates.map((candidate, i) => ({ ...candidate, customerId: must(ids[i], 'one each').id })),
        t0,
        services,
      )
      assert.ok(starts.every(({ status }) => status === 'started'))
    })
    for (const [what, read] of [
      ['inbox', consumed],
      ['starts', started],
    ] as const) {
      for (const [table, n] of read) assert.ok(n <= 2000, `${what}, ${state}: ${n} rows of ${table}`)
    }
  }
})
