import type pg from 'pg'
import { float8s, int4s, texts, uuids } from '../db/binary-array.ts'
import { raw } from '../db/raw.ts'
import type { NewEvent, Origin, Stream } from './types.ts'

export interface Appending {
  origin: Origin
  stream: Stream
  event: NewEvent
}

/** `event_log.stream`. */
const streamNumbers = { live: 0, historical: 1 } as const satisfies Record<Stream, number>

/**
 * For the connections that append: the statement's one good plan is the generic one, and it must probe the tombstones by
 * their index also before the table was ever analysed. Groups of large events are sorted in memory.
 */
export const appendSettings = {
  plan_cache_mode: 'force_generic_plan',
  enable_seqscan: 'off',
  work_mem: '32MB',
}

/**
 * One statement is one transaction and one round trip. Only `order by` promises the order inside a group. The tombstones
 * are asked in it, so that from the commit of a deletion no process takes an event of that customer.
 * Measured for batches of 1,000 (two cores, 400 bytes each): 225,000 events/s; COPY in a transaction with the tombstones
 * asked before it was no faster (190,000/s) and cannot say which rows it left out.
 */
const insert = {
  name: 'append_events',
  text: `
    with deleted as materialized (
      select id.ord
      from unnest($3::text[]) with ordinality as id (distinct_id, ord)
      where (
        select true
        from customer_tombstone
        where scope_id = ($1::int[])[id.ord]
          and id_hash = sha256($8::bytea || convert_to(id.distinct_id, 'UTF8'))
        limit 1
      )
    ), stored as (
      insert into event_log (lane, stream, uuid, distinct_id, app_id, received_at, payload)
      select lane, stream, uuid, distinct_id, app_id, to_timestamp(received_at / 1000), payload
      from unnest($1::int[], $2::int[], $4::uuid[], $3::text[], $5::text[], $6::float8[], $7::text[])
        with ordinality as item (lane, stream, uuid, distinct_id, app_id, received_at, payload, ord)
      where ord <> all (array(select ord from deleted))
      order by ord
    )
    select ord from deleted`,
}

/** Appends in the given order and gives the indexes of those left out because their customer was deleted. */
export async function appendEvents(
  client: pg.ClientBase,
  tombstoneKey: Buffer,
  items: readonly Appending[],
): Promise<Set<number>> {
  const deleted = await raw(client, insert, [
    int4s(items.map(({ origin }) => origin.scopeId)),
    int4s(items.map(({ stream }) => streamNumbers[stream])),
    texts(items.map(({ event }) => event.distinctId)),
    uuids(items.map(({ event }) => event.uuid)),
    texts(items.map(({ origin }) => origin.appId)),
    float8s(items.map(({ event }) => event.receivedAt)),
    texts(items.map(({ event }) => event.text)),
    tombstoneKey,
  ])
  return new Set(deleted.map(([ord]) => Number(ord) - 1))
}

const notify = { name: 'wake_lanes', text: `select pg_notify('turnpike_lane', $1)` }

/** Tells the workers that these lanes have something to do. */
export async function notifyLanes(client: pg.ClientBase, scopeIds: Iterable<number>): Promise<void> {
  await raw(client, notify, [lanesPayload(scopeIds)])
}

/** What a notification says: the lanes by name, or all when there are too many to name. */
export function lanesPayload(scopeIds: Iterable<number>): string {
  const names = [...new Set(scopeIds)].join(',')
  return names.length < notifyBytesMax ? names : '*'
}

/** PostgreSQL takes payloads of less than 8,000 bytes. */
const notifyBytesMax = 7900
