import type pg from 'pg'
import { texts } from '../db/binary-array.ts'
import type { Pool, Tx } from '../db/pool.ts'
import { raw } from '../db/raw.ts'
import { must } from '../kernel/assert.ts'
import { laneLeaseMs, logClockSlackMs, sliceBytesMax, sliceEventsMax } from '../kernel/limits.ts'
import type { Scope } from '../tenancy/index.ts'
import type { Stream } from './types.ts'

/**
 * For the connections of the lane: everything it does is a probe of an index in order, also on tables that nobody has
 * analysed yet. So pinned, a generic plan reads a slice as fast as a custom one (8 ms for 2,000 rows) and need not be made
 * each time (0.5 ms). Nothing is looked up twice in a statement, so what was found is not kept for it (0.2 us a look-up).
 */
export const laneSettings = {
  enable_seqscan: 'off',
  enable_sort: 'off',
  enable_hashjoin: 'off',
  enable_mergejoin: 'off',
  enable_memoize: 'off',
  lock_timeout: '2s',
}

/** For what a slice reads before its transaction: the same few statements, whose generic plans are the good ones. */
export const laneReadSettings = { ...laneSettings, plan_cache_mode: 'force_generic_plan' }

/** A place in one stream of the log; numbers as PostgreSQL writes them. */
export interface Cursor {
  gen: string
  xid: string
  seq: string
  /** When the row there was logged, in Unix milliseconds; null before the first row. */
  loggedAt: number | null
}

/** A lane that this worker may write: until the lease ends nobody else tries, and after it the fence keeps us out. */
export interface HeldLane {
  scope: Scope
  owner: string
  fence: string
  cursors: Record<Stream, Cursor>
  /** It was stopped, and no slice has succeeded since. */
  wasStopped: boolean
}

/** Set while too many of the lane's events could not be applied. */
export const isStopped = (lane: string) => `coalesce(${lane}.stopped_until > clock_timestamp(), false)`

/** A lease that ends later than any lease can is one of a clock that was set back since. */
export const leaseRuns = (lane: string) =>
  `${lane}.lease_until between clock_timestamp() and clock_timestamp() + interval '${2 * laneLeaseMs} milliseconds'`

const acquire = {
  name: 'acquire_lane',
  text: `
    update lane
    set owner = $2,
      lease_until = clock_timestamp() + interval '${laneLeaseMs} milliseconds',
      fence = fence + 1
    from scope
    join project on project.id = scope.project_id
    where lane.id = $1
      and scope.id = lane.id
      and (lane.owner = $2 or not ${leaseRuns('lane')})
      and not ${isStopped('lane')}
    returning fence, project.workspace_id, scope.project_id, scope.environment, stopped_until is not null,
      live_gen, live_xid, live_seq, date_part('epoch', live_logged_at) * 1000,
      historical_gen, historical_xid, historical_seq, date_part('epoch', historical_logged_at) * 1000`,
}

/** Takes the lane, or gives null when another worker holds it, it is stopped, or there is no such scope. */
export async function acquireLane(client: pg.ClientBase, id: number, owner: string): Promise<HeldLane | null> {
  const [row] = await raw(client, acquire, [id, owner])
  if (row) {
    const [fence, workspaceId, projectId, environment, stopped, ...cursors] = row
    return {
      owner,
      fence: must(fence, 'fence'),
      scope: {
        scopeId: id,
        workspaceId: must(workspaceId, 'workspace'),
        projectId: must(projectId, 'project'),
        environment: environment === 'test' ? 'test' : 'live',
      },
      cursors: { live: cursorOf(cursors.slice(0, 4)), historical: cursorOf(cursors.slice(4)) },
      wasStopped: stopped === 't',
    }
  }
  return (await insertLane(client, id)) ? acquireLane(client, id, owner) : null
}

function cursorOf([gen, xid, seq, loggedAt]: (string | null)[]): Cursor {
  const ms = Number(loggedAt)
  return { gen: gen ?? '0', xid: xid ?? '0', seq: seq ?? '0', loggedAt: Number.isFinite(ms) ? ms : null }
}

/** A scope gets its lane with its first event. */
async function insertLane(client: pg.ClientBase, id: number): Promise<boolean> {
  const inserted = await raw(
    client,
    {
      name: 'insert_lane',
      text: `
        insert into lane (id)
        select id
        from scope
        where id = $1
        on conflict do nothing
        returning id`,
    },
    [id],
  )
  return inserted.length > 0
}

/** Gives all lanes of a worker that stops to whoever wants them. */
export async function releaseLanes(pool: Pool, owner: string): Promise<void> {
  await pool.query(
    `update lane
    set lease_until = '-infinity'
    where owner = $1
      and lease_until > clock_timestamp()`,
    [owner],
  )
}

/** Lets nobody take the lane for a while. */
export async function stopLane(tx: Tx, { scope }: HeldLane, { why, ms }: { why: string; ms: number }): Promise<void> {
  await tx.query(
    `update lane
    set stopped_until = clock_timestamp() + $2 * interval '1 millisecond',
      stopped_why = $3
    where id = $1`,
    [scope.scopeId, ms, why],
  )
}

/** A slice went through. */
export async function forgetStop(pool: Pool, { scope, owner, fence }: HeldLane): Promise<void> {
  await pool.query(
    `update lane
    set stopped_until = null,
      stopped_why = null
    where id = $1
      and owner = $2
      and fence = $3`,
    [scope.scopeId, owner, fence],
  )
}

/** Lets every stopped lane be tried again at once. */
export async function resumeLanes(pool: Pool): Promise<void> {
  await pool.query(
    `update lane
    set stopped_until = clock_timestamp()
    where stopped_until > clock_timestamp()`,
  )
}

/** A row of the log as the lane reads it. */
export interface LogRow {
  gen: string
  xid: string
  seq: string
  loggedAt: number
  uuid: string
  distinctId: string
  appId: string | null
  receivedAt: number
  /** Position and body hash of the event that was applied under this uuid before, if any. */
  seen: { pos: bigint; bodyHash: bigint } | null
  text: string
}

/**
 * Below the snapshot's xmin no row can appear any more, so what is read there is complete and its order final: seq alone
 * loses rows that commit late, and (xid, seq) without the bound does too. Rows above it come without their payload, as a
 * sign that the lane has to look again soon. xid is shown under another name: `order by xid` would sort the shown text.
 * Merged from the partitions' indexes event_log_cursor, without a sort; the limit is part of the text, because as a
 * parameter it made the planner choose for far more rows.
 */
const read = (stream: 0 | 1) => ({
  name: `read_lane_${stream}`,
  text: `
    select log.gen, log.xid::text as xid_text, log.seq, date_part('epoch', log.logged_at) * 1000, log.safe, log.uuid,
      log.distinct_id, log.app_id, date_part('epoch', log.received_at) * 1000, seen.pos, seen.body_hash,
      case when log.safe then log.payload end
    from (
      select gen, xid, seq, logged_at, uuid, distinct_id, app_id, received_at, payload,
        gen < (select gen from log_meta where id = 1) or xid < (select pg_snapshot_xmin(pg_current_snapshot())) as safe,
        sum(octet_length(payload)) over (order by gen, xid, seq rows unbounded preceding) - octet_length(payload) as bytes_before
      from (
        select gen, xid, seq, logged_at, uuid, distinct_id, app_id, received_at, payload
        from event_log
        where lane = $1
          and stream = ${stream}
          and logged_at >= $5
          and (gen, xid, seq) > ($2, $3::xid8, $4)
        order by gen, xid, seq
        limit ${sliceEventsMax}
      ) next
    ) log
    left join lateral (
      select pos, body_hash
      from event_seen
      where scope_id = $1
        and uuid = log.uuid
      limit 1
    ) seen on true
    where log.bytes_before < ${sliceBytesMax}
    order by log.gen, log.xid, log.seq`,
})
const reads = { live: read(0), historical: read(1) }

/** The next rows of a stream in their final order. `unsafe`: others are there already whose place is not final yet. */
export async function readSlice(
  client: pg.ClientBase,
  { scope, cursors }: HeldLane,
  stream: Stream,
): Promise<{ rows: LogRow[]; unsafe: boolean }> {
  const { gen, xid, seq, loggedAt } = cursors[stream]
  const since = loggedAt === null ? '-infinity' : new Date(loggedAt - logClockSlackMs).toISOString()
  const found = await raw(client, reads[stream], [scope.scopeId, gen, xid, seq, since])
  const end = found.findIndex((row) => row[4] !== 't')
  const safe = end === -1 ? found : found.slice(0, end)
  return { rows: safe.map(logRowOf), unsafe: end !== -1 }
}

function logRowOf(row: (string | null)[]): LogRow {
  const [gen, xid, seq, loggedAt, , uuid, distinctId, appId, receivedAt, seenPos, seenHash, text] = row
  return {
    gen: gen ?? '',
    xid: xid ?? '',
    seq: seq ?? '',
    loggedAt: Number(loggedAt),
    uuid: uuid ?? '',
    distinctId: distinctId ?? '',
    appId: appId ?? null,
    receivedAt: Math.round(Number(receivedAt)),
    seen: seenPos && seenHash ? { pos: BigInt(seenPos), bodyHash: BigInt(seenHash) } : null,
    text: must(text, 'a safe row has its payload'),
  }
}

/** The lane's place after this row. */
export function cursorBehind({ gen, xid, seq, loggedAt }: LogRow): Cursor {
  return { gen, xid, seq, loggedAt }
}

const move = (stream: Stream) => ({
  name: `move_${stream}_cursor`,
  text: `
    update lane
    set ${stream}_gen = $4,
      ${stream}_xid = $5::xid8,
      ${stream}_seq = $6,
      ${stream}_logged_at = 'epoch'::timestamptz + $7::float8 * interval '1 millisecond',
      pos = pos + $8::bigint,
      lease_until = clock_timestamp() + interval '${laneLeaseMs} milliseconds'
    where id = $1
      and owner = $2
      and fence = $3
      and ${stream}_gen = $9
      and ${stream}_xid = $10::xid8
      and ${stream}_seq = $11
    returning pos`,
})
const moves = { live: move('live'), historical: move('historical') }

/**
 * The first write of a slice: moves the cursor, renews the lease and takes `events` positions. Gives the position before
 * the first of them, or null when the lane is lost: to another worker, or because the cursor is no longer where we read.
 */
export async function moveCursor(
  tx: Tx,
  { scope, owner, fence, cursors }: HeldLane,
  { stream, to, events }: { stream: Stream; to: Cursor; events: number },
): Promise<bigint | null> {
  const from = cursors[stream]
  const [row] = await raw(tx.client, moves[stream], [
    ...[scope.scopeId, owner, fence, to.gen, to.xid, to.seq, to.loggedAt, events],
    ...[from.gen, from.xid, from.seq],
  ])
  return row ? BigInt(row[0] ?? 0) - BigInt(events) : null
}

const commands = {
  name: 'record_commands',
  text: `
    with moved as (
      insert into lane (id, pos)
      values ($1::int, $3::bigint)
      on conflict (id) do update
      set pos = lane.pos + excluded.pos
      returning pos - $3::bigint as before
    )
    insert into command (scope_id, pos, kind, body)
    select $1::int, moved.before + item.n, $2, item.body::jsonb
    from moved
    cross join unnest($4::text[]) with ordinality as item(body, n)
    returning (select before from moved)`,
}

/** Locks the lane, takes its next positions and leaves the record of a command at each. Gives the first; there is at least one. */
export async function insertCommands(tx: Tx, { scopeId }: Scope, kind: string, bodies: string[]): Promise<bigint> {
  const [row] = await raw(tx.client, commands, [scopeId, kind, bodies.length, texts(bodies)])
  return BigInt(must(row?.[0], 'commands have positions')) + 1n
}
