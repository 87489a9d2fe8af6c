import pino from 'pino'
import { Pool, type Tx } from '../../src/db/pool.ts'
import { createFeature, ensureEntryPartitions } from '../../src/entitlements/index.ts'
import { ensurePartitions } from '../../src/events/index.ts'
import { type Applied, applyInputs } from '../../src/journeys/apply/apply.ts'
import type { Told } from '../../src/journeys/apply/work.ts'
import { aPlan, enrolment } from '../../src/journeys/engine/testing/a-plan.ts'
import type { PinnedPlan } from '../../src/journeys/plan.ts'
import { journeyColumns, journeyOf } from '../../src/journeys/store/journey-row.ts'
import { journeySettings } from '../../src/journeys/store/journey-store.ts'
import { fireTimers } from '../../src/journeys/timers/fire.ts'
import type { Input, Journey } from '../../src/journeys/types.ts'
import { must } from '../../src/kernel/assert.ts'
import { randomText } from '../../src/kernel/ids.ts'
import { type Scope, touchCatalogue } from '../../src/tenancy/index.ts'
import { testDatabase } from '../harness/database.ts'
import { testScope } from '../harness/lane.ts'

export type JourneyWorld = Awaited<ReturnType<typeof openJourneys>>

type PlanParts = Parameters<typeof aPlan>[0]

export const services = { tombstoneKey: Buffer.alloc(32, 7), log: pino({ level: 'silent' }) }

/** The engine over a database of its own, without lane and HTTP. */
export async function openJourneys() {
  const database = await testDatabase()
  const pool = new Pool(database.url, { name: 'journeys', max: 8, settings: journeySettings })
  await ensureEntryPartitions(pool)
  await ensurePartitions(pool)
  await pool.query(`insert into instance (id, sealed_secrets) values (1, '')`)
  const world = {
    database,
    pool,
    services,
    scope: () => testScope(pool),
    /** As it would be published: its experience, version and publication. */
    async plan(scope: Scope, parts: PlanParts = {}): Promise<PinnedPlan> {
      const name = randomText(10)
      const [experience] = await pool.query<{ id: number }>(
        `insert into experience (scope_id, public_id, key, name, status, last_version)
         values ($1, $2, $2, $2, 'published', 1)
         returning id`,
        [scope.scopeId, `exp_${name}`],
      )
      const experienceId = must(experience, 'it was inserted').id
      const [publicId, buildId] = [`ver_${name}`, `bld_${name}`]
      const pin = { experienceId, experiencePublicId: `exp_${name}`, versionPublicId: publicId, buildId }
      const plan = { ...aPlan(parts), ...pin }
      await pool.query(
        `insert into experience_version (scope_id, experience_id, version_number, public_id, draft, draft_sha256)
         values ($1, $2, 1, $3, '{}', '')`,
        [scope.scopeId, experienceId, publicId],
      )
      await pool.query(
        `insert into publication (scope_id, app_id, seq, public_id, experience_id, version_number, build_id, plan, published_at, published_by)
         select $1, 'app_1', coalesce(max(seq), 0) + 1, $2, $3, 1, $4, $5, now(), 'test'
         from publication
         where scope_id = $1`,
        [scope.scopeId, `pub_${name}`, experienceId, buildId, JSON.stringify(plan)],
      )
      return plan
    },
    async customer({ scopeId }: Scope, distinctId = randomText(8), properties = {}): Promise<string> {
      const id = crypto.randomUUID()
      await pool.query('insert into customer (scope_id, id, properties, created_at) values ($1, $2, $3, now())', [
        ...[scopeId, id, JSON.stringify(properties)],
      ])
      await pool.query(
        `insert into customer_alias (scope_id, distinct_id, customer_id, since_pos, first_seen_at) values ($1, $2, $3, 0, now())`,
        [scopeId, distinctId, id],
      )
      return id
    },
    feature: (scope: Scope, key: string) =>
      pool.transaction(async (tx) => {
        const made = await createFeature(tx, scope, { key, name: key, type: 'metered', published: true })
        await touchCatalogue(tx, scope.scopeId)
        return made
      }),
    async tell(scope: Scope, told: Told[], now: number, through: Pool = pool): Promise<Applied[]> {
      return through.transaction((tx: Tx) => applyInputs(tx, scope, told, now, services))
    },
    /** A journey of the plan that begins at `now`. */
    async start(
      scope: Scope,
      plan: PinnedPlan,
      customerId: string,
      now: number,
      more: Partial<Extract<Input, { kind: 'enrol' }>> = {},
    ): Promise<string> {
      const journeyId = newJourneyId()
      const input = enrolment({ journeyId, customerId, at: now, occurrence: `api:${journeyId}`, ...more })
      await world.tell(scope, [{ journeyId, plan, input }], now)
      return journeyId
    },
    fire: (now: number, through: Pool = pool) => fireTimers({ pool: through, services, now }),
    async journey({ scopeId }: Scope, id: string): Promise<Journey> {
      const { rows } = await pool.connected((client) =>
        client.query<(string | null)[]>({
          text: `select ${journeyColumns.replaceAll(/(\w+)/g, '$1::text')} from journey where scope_id = $1 and id = $2`,
          values: [scopeId, id],
          rowMode: 'array',
        }),
      )
      const row = must(rows[0], 'it is there')
      return journeyOf(row.map((value, i) => (i === 16 ? (value === 'true' ? 't' : 'f') : value)))
    },
    /** All that is stored of a scope's journeys, comparable. */
    async rows({ scopeId }: Scope) {
      const of = (table: string, order: string) =>
        pool.query<Record<string, unknown>>(`select * from ${table} where scope_id = $1 order by ${order}`, [scopeId])
      return {
        journeys: await of('journey', 'id'),
        transitions: await of('journey_transition', 'journey_id, rev'),
        legs: await of('journey_leg', 'journey_id, generation'),
        timers: await of('journey_timer', 'journey_id, kind'),
        subscriptions: await of('journey_subscription', 'journey_id, event_name'),
        outbox: await of('journey_outbox', 'journey_id, rev, index'),
        enrolments: await pool.query<{ count: number; last_enrolled_at_ms: bigint; times: bigint[] }>(
          'select * from experience_enrolment where scope_id = $1 order by experience_id, customer_id',
          [scopeId],
        ),
        grants: await of('ledger_grant', 'id'),
        events: await of('(select lane as scope_id, uuid, distinct_id, payload from event_log) e', 'uuid'),
      }
    },
    async [Symbol.asyncDispose]() {
      await pool[Symbol.asyncDispose]()
      await database[Symbol.asyncDispose]()
    },
  }
  return world
}

let made = 0

/** Version 7, rising. */
export function newJourneyId(): string {
  return `01936b2e-7c00-7000-8000-${(++made).toString(16).padStart(12, '0')}`
}
