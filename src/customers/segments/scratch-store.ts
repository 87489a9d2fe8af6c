import { float8s, int8s, uuids } from '../../db/binary-array.ts'
import type { Tx } from '../../db/pool.ts'
import type { JsonObject } from '../../events/index.ts'
import { segmentCountEventsMax, segmentCountMsMax, segmentScratchEvents } from '../../kernel/limits.ts'
import type { Scope } from '../../tenancy/index.ts'
import type { Place } from './place.ts'
import type { Happened } from './step.ts'

interface EventRow {
  owner: string
  ts_ms: number
  pos: string
  event: string
  at_ms: number
  /** Null: not asked for. */
  props: JsonObject | null
  fact: boolean
}

/** How much of the event table one transaction reads. */
export interface Budget {
  events: number
  ms: number
}

export const laneBudget: Budget = { events: segmentCountEventsMax, ms: segmentCountMsMax }

export interface Whose {
  customerId: string
  /** The last event that was read before; null: begin with the first one. */
  after: Place | null
}

/**
 * Everything that the named events say of some customers, each customer's in the order of places, as far as
 * the budget goes: gives those that more is to be read of, with the last event read. Through a cursor, so that a history
 * is never in memory at once. An event is its distinct id's; `event.customer_id` only narrows the search, and follows merges
 * and splits late, so all records are looked through that the customer's events may still stand under. By the index
 * event_customer_time of each month from the place on, and customer_merged for the records.
 */
export async function eachEvent(
  tx: Tx,
  scope: Scope,
  { whose, names, budget }: { whose: Whose[]; names: string[]; budget: Budget },
  tell: (customerId: string, event: Happened) => void,
): Promise<Map<string, Place | null>> {
  const waiting = new Map(whose.map(({ customerId, after }) => [customerId, after]))
  if (waiting.size === 0 || names.length === 0) return new Map()
  const eventsMax = budget.events
  await declare(tx, scope, { whose, names, eventsMax })
  const until = performance.now() + budget.ms
  const fetched = Math.min(segmentScratchEvents, eventsMax)
  let last: string | null = null
  for (let read = 0; read < eventsMax && performance.now() < until; ) {
    const rows = await tx.query<EventRow>(`fetch ${fetched} from segment_events`)
    for (const { owner, ts_ms: ts, pos, event, at_ms: at, props: properties, fact } of rows) {
      // The events of one customer come one after the other.
      if (last !== null && last !== owner) waiting.delete(last)
      last = owner
      const place: Place = [ts, pos]
      waiting.set(owner, place)
      if (properties) tell(owner, { name: event, at, properties, fact, place })
    }
    read += rows.length
    if (rows.length === fetched) continue
    waiting.clear()
    break
  }
  await tx.query('close segment_events')
  return waiting
}

async function declare(
  tx: Tx,
  scope: Scope,
  { whose, names, eventsMax }: { whose: Whose[]; names: string[]; eventsMax: number },
): Promise<void> {
  const values = [
    scope.scopeId,
    uuids(whose.map(({ customerId }) => customerId)),
    float8s(whose.map(({ after }) => after?.[0] ?? null)),
    int8s(whose.map(({ after }) => (after ? BigInt(after[1]) : 0n))),
    names,
  ]
  await tx.client.query(
    `declare segment_events no scroll cursor for
     with recursive record as (
       select id as owner, id
       from unnest($2::uuid[]) as i(id)
       union
       select record.owner, next.id
       from record
       cross join lateral (
         select id
         from customer
         where scope_id = $1
           and merged_into = record.id
         union all
         select customer_id
         from merge_journal
         where scope_id = $1
           and source_customer_id = record.id
           and status = 'split'
         offset 0
       ) next
     )
     select i.owner, round(date_part('epoch', e.ts) * 1000) as ts_ms, e.pos::text as pos, e.event,
       round(date_part('epoch', least(e.ts, e.received_at)) * 1000) as at_ms,
       case
         when e.event = any ($5) and exists (
           select
           from customer_alias
           where scope_id = $1
             and distinct_id = e.distinct_id
             and customer_id = i.owner
         ) then e.props
       end as props,
       e.trust = 1 and e.recognised as fact
     from (
       select owner, pos,
         case when ts_ms is null then '-infinity' else 'epoch'::timestamptz + ts_ms * interval '1 millisecond' end as ts
       from unnest($2::uuid[], $3::float8[], $4::int8[]) as i(owner, ts_ms, pos)
     ) i
     cross join lateral (
       select one.*
       from record
       cross join lateral (
         select event, ts, pos, received_at, props, distinct_id, trust, recognised
         from event
         where scope_id = $1
           and customer_id = record.id
           and (ts, pos) > (i.ts, i.pos)
         order by ts, pos
         limit ${eventsMax}
       ) one
       where record.owner = i.owner
       order by ts, pos
       limit ${eventsMax}
     ) e`,
    values,
  )
}
