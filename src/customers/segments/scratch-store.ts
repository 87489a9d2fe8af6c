import { uuids } from '../../db/binary-array.ts'
import type { Tx } from '../../db/pool.ts'
import type { JsonObject } from '../../events/index.ts'
import { segmentScratchEvents } from '../../kernel/limits.ts'
import type { Scope } from '../../tenancy/index.ts'
import type { Happened } from './step.ts'

interface EventRow {
  owner: string
  event: string
  at_ms: number
  props: JsonObject
  fact: boolean
}

/**
 * Everything that the named events say of some customers, in no order, read through a cursor so that one customer's history
 * is never in memory at once. An event is its distinct id's; `event.customer_id` only narrows the search, and follows merges
 * and splits late, so all records are looked through that the customer's events may still stand under. By the index
 * event_customer_time, and customer_merged for the records.
 */
export async function eachEvent(
  tx: Tx,
  scope: Scope,
  { customerIds, names }: { customerIds: string[]; names: string[] },
  tell: (customerId: string, event: Happened) => void,
): Promise<void> {
  if (customerIds.length === 0 || names.length === 0) return
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
     select record.owner, e.event, e.at_ms, e.props, e.fact
     from record
     cross join lateral (
       select event, round(date_part('epoch', least(ts, received_at)) * 1000) as at_ms, props, distinct_id,
         trust = 1 and recognised as fact
       from event
       where scope_id = $1
         and customer_id = record.id
         and event = any ($3)
       offset 0
     ) e
     where exists (
       select
       from customer_alias
       where scope_id = $1
         and distinct_id = e.distinct_id
         and customer_id = record.owner
     )`,
    [scope.scopeId, uuids(customerIds), names],
  )
  for (;;) {
    const rows = await tx.query<EventRow>(`fetch ${segmentScratchEvents} from segment_events`)
    for (const { owner, event, at_ms: at, props: properties, fact } of rows) {
      tell(owner, { name: event, at, properties, fact })
    }
    if (rows.length < segmentScratchEvents) break
  }
  await tx.query('close segment_events')
}
