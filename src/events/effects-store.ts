import { bools, float8s, int4s, int8s, itemsOf, texts, uuids } from '../db/binary-array.ts'
import type { Tx } from '../db/pool.ts'
import { raw } from '../db/raw.ts'
import type { Scope } from '../tenancy/index.ts'

/** One applied event as it is stored. */
export interface EventRow {
  pos: bigint
  uuid: string
  bodyHash: bigint
  customerId: string
  distinctId: string
  appId: string | null
  name: string
  /** Unix milliseconds, both. */
  at: number
  receivedAt: number
  value: number | null
  entityId: string | null
  /** JSON, as the ones below. */
  properties: string
  trust: 'device' | 'server'
  recognised: boolean
  merge: string | null
  journeyOrigin: string | null
  warnings: string | null
}

const dayMs = 86_400_000

const seen = {
  name: 'insert_seen',
  text: `
    insert into event_seen (scope_id, uuid, pos, received_day, body_hash)
    select $1::int, uuid, pos, date '1970-01-01' + day, body_hash
    from ${itemsOf(2, { uuid: 'uuid', pos: 'bigint', day: 'int', body_hash: 'bigint' })}`,
}

/** Its primary key is the last guard of exactly once: what was applied before fails here, it is not skipped. */
export async function insertSeen(tx: Tx, { scopeId }: Scope, rows: readonly EventRow[]): Promise<void> {
  await raw(tx.client, seen, [
    scopeId,
    uuids(rows.map(({ uuid }) => uuid)),
    int8s(rows.map(({ pos }) => pos)),
    int4s(rows.map(({ receivedAt }) => Math.floor(receivedAt / dayMs))),
    int8s(rows.map(({ bodyHash }) => bodyHash)),
  ])
}

/** to_timestamp() goes through seconds as a double; this is exact in milliseconds for every year. */
const instant = (ms: string) => `'epoch'::timestamptz + ${ms} * interval '1 millisecond'`

const events = {
  name: 'insert_events',
  text: `
    insert into event (scope_id, pos, uuid, customer_id, distinct_id, app_id, event, ts, received_at, value, entity_id,
      props, trust, recognised, historical, merge, journey_origin, warnings)
    select $1::int, pos, uuid, customer_id, distinct_id, app_id, name, ${instant('at')}, ${instant('received_at')}, value, entity_id,
      props::jsonb, trust, recognised, $2::bool, merge::jsonb, journey_origin::jsonb, warnings::jsonb
    from ${itemsOf(3, {
      pos: 'bigint',
      uuid: 'uuid',
      customer_id: 'uuid',
      distinct_id: 'text',
      app_id: 'text',
      name: 'text',
      at: 'float8',
      received_at: 'float8',
      value: 'float8',
      entity_id: 'text',
      props: 'text',
      trust: 'int',
      recognised: 'bool',
      merge: 'text',
      journey_origin: 'text',
      warnings: 'text',
    })}`,
}

export async function insertEvents(
  tx: Tx,
  { scopeId }: Scope,
  rows: readonly EventRow[],
  { historical }: { historical: boolean },
): Promise<void> {
  await raw(tx.client, events, [
    scopeId,
    historical,
    int8s(rows.map(({ pos }) => pos)),
    uuids(rows.map(({ uuid }) => uuid)),
    uuids(rows.map(({ customerId }) => customerId)),
    texts(rows.map(({ distinctId }) => distinctId)),
    texts(rows.map(({ appId }) => appId)),
    texts(rows.map(({ name }) => name)),
    float8s(rows.map(({ at }) => at)),
    float8s(rows.map(({ receivedAt }) => receivedAt)),
    float8s(rows.map(({ value }) => value)),
    texts(rows.map(({ entityId }) => entityId)),
    texts(rows.map(({ properties }) => properties)),
    int4s(rows.map(({ trust }) => (trust === 'server' ? 1 : 0))),
    bools(rows.map(({ recognised }) => recognised)),
    texts(rows.map(({ merge }) => merge)),
    texts(rows.map(({ journeyOrigin }) => journeyOrigin)),
    texts(rows.map(({ warnings }) => warnings)),
  ])
}
