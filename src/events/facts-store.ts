import type pg from 'pg'
import { float8s, int4s, texts, uuids } from '../db/binary-array.ts'
import { raw } from '../db/raw.ts'
import { lanesPayload } from './append-store.ts'

export interface FactRow {
  scopeId: number
  distinctId: string
  uuid: string
  /** Unix milliseconds. */
  at: number
  /** The EventPayload as JSON. */
  text: string
}

/** A test environment's time may run ahead: what is told of then is received now. One statement: the notification leaves with the COMMIT that makes the rows visible. */
const insert = {
  name: 'append_facts',
  text: `
    with stored as (
      insert into event_log (lane, stream, uuid, distinct_id, received_at, payload)
      select lane, 0, uuid, distinct_id, least(to_timestamp(at / 1000), clock_timestamp()), payload
      from unnest($1::int[], $2::uuid[], $3::text[], $4::float8[], $5::text[])
        with ordinality as item (lane, uuid, distinct_id, at, payload, ord)
      order by ord
    )
    select pg_notify('turnpike_lane', $6)`,
}

export async function insertFacts(client: pg.ClientBase, rows: readonly FactRow[]): Promise<void> {
  await raw(client, insert, [
    int4s(rows.map(({ scopeId }) => scopeId)),
    uuids(rows.map(({ uuid }) => uuid)),
    texts(rows.map(({ distinctId }) => distinctId)),
    float8s(rows.map(({ at }) => at)),
    texts(rows.map(({ text }) => text)),
    lanesPayload(rows.map(({ scopeId }) => scopeId)),
  ])
}
