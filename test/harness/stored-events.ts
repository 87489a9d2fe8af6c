import { randomUUID } from 'node:crypto'
import type { Pool } from '../../src/db/pool.ts'
import type { LaneEvent } from '../../src/events/index.ts'
import { slotsOf } from '../../src/events/queries/rollup.ts'
import { addToRollup } from '../../src/events/queries/rollup-store.ts'
import type { Scope } from '../../src/tenancy/index.ts'
import type { Row } from './reference-queries.ts'

/** Stores events and their customers as lane and merges leave them. `record` is the customer an event was stored for. */
export async function storeEvents(
  pool: Pool,
  scope: Scope,
  events: readonly (Omit<Row, 'customer'> & { record: string })[],
): Promise<void> {
  const { scopeId } = scope
  await pool.query(
    `insert into event (scope_id, pos, uuid, customer_id, distinct_id, app_id, event, ts, received_at, value, props, trust,
       recognised, historical)
     select $1, pos, uuid, customer_id, customer_id::text, app_id, event, 'epoch'::timestamptz + at * interval '1 millisecond',
       now(), value, props, 0, true, false
     from jsonb_to_recordset($2::jsonb)
       as e (pos bigint, uuid uuid, customer_id uuid, app_id text, event text, at float8, value float8, props jsonb)`,
    [
      scopeId,
      JSON.stringify(
        events.map(({ position, record, appId, event, at, value, properties }) => ({
          ...{ pos: position, uuid: randomUUID(), customer_id: record, app_id: appId, event, at, value },
          props: properties,
        })),
      ),
    ],
  )
  const counted = events.map(({ event, appId, at, value }) => ({
    ...{ name: event, appId, at },
    payload: value === null ? {} : { value },
  }))
  await pool.transaction((tx) => addToRollup(tx, scope, slotsOf(counted as LaneEvent[])))
  await pool.query('update lane set pos = greatest(pos, $2) where id = $1', [
    scopeId,
    Math.max(0, ...events.map(({ position }) => position)),
  ])
}

/** Merged ones with their events still standing under them. */
export async function storeCustomers(
  pool: Pool,
  { scopeId }: Scope,
  customers: readonly { id: string; properties: object; mergedInto: string | null }[],
): Promise<void> {
  await pool.query(
    `insert into customer (scope_id, id, properties, created_at, merged_into)
     select $1, id, properties, now(), merged_into
     from jsonb_to_recordset($2::jsonb) as c (id uuid, properties jsonb, merged_into uuid)`,
    [
      scopeId,
      JSON.stringify(customers.map(({ mergedInto, ...customer }) => ({ ...customer, merged_into: mergedInto }))),
    ],
  )
  await pool.query(
    `insert into customer_change (scope_id, pos, kind, customer_id, source_customer_id)
     select $1, -row_number() over (), 'merge', merged_into, id
     from customer
     where scope_id = $1
       and merged_into is not null`,
    [scopeId],
  )
}
