import type pg from 'pg'
import { int4s, texts, uuids } from '../../db/binary-array.ts'
import { raw, type Statement } from '../../db/raw.ts'
import type { JourneyKey } from './journey-store.ts'

const insert: Statement = {
  name: 'journeys_subscribe',
  text: `
    insert into journey_subscription (scope_id, customer_id, event_name, journey_id)
    select *
    from unnest($1::int[], $2::uuid[], $3::text[], $4::uuid[])
    on conflict do nothing`,
}

export async function subscribe(
  client: pg.ClientBase,
  rows: readonly (JourneyKey & { customerId: string; eventName: string })[],
): Promise<void> {
  if (rows.length === 0) return
  await raw(client, insert, [
    int4s(rows.map(({ scopeId }) => scopeId)),
    uuids(rows.map(({ customerId }) => customerId)),
    texts(rows.map(({ eventName }) => eventName)),
    uuids(rows.map(({ journeyId }) => journeyId)),
  ])
}

const remove: Statement = {
  name: 'journeys_unsubscribe',
  text: `
    delete from journey_subscription s
    using unnest($1::int[], $2::uuid[]) as k(scope_id, journey_id)
    where s.scope_id = k.scope_id
      and s.journey_id = k.journey_id`,
}

export async function unsubscribe(client: pg.ClientBase, keys: readonly JourneyKey[]): Promise<void> {
  if (keys.length === 0) return
  await raw(client, remove, [int4s(keys.map(({ scopeId }) => scopeId)), uuids(keys.map(({ journeyId }) => journeyId))])
}
