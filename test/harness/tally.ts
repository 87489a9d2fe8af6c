import { texts } from '../../src/db/binary-array.ts'
import type { Pool, Sql, Tx } from '../../src/db/pool.ts'
import {
  type Consumer,
  type EventOutcome,
  type LaneEvent,
  type LoggedEvent,
  type Projection,
  runLanes,
  type SliceReport,
  StaleSlice,
} from '../../src/events/index.ts'
import { systemClock } from '../../src/kernel/clock.ts'
import { uuidV5 } from '../../src/kernel/ids.ts'
import type { Scope } from '../../src/tenancy/index.ts'
import { silent } from './server.ts'

interface Count {
  distinct_id: string
  events: number
  total: number
  version: number
}
type Tallies = Map<string, Count>
interface TallyDecision {
  outcomes: EventOutcome[]
  written: Count[]
}

/** The smallest projection that shows every event lost or doubled: events and the sum of their values for each distinct id. Ids that begin with `gone` are of deleted customers. */
export const tally: Projection<Tallies, TallyDecision> = {
  load: async (sql, scope, events) => tallies(await readTally(sql, scope, events)),
  decide(_scope, state, events) {
    const written: Tallies = new Map()
    const outcomes = events.map((event): EventOutcome => {
      const id = event.distinctId
      if (id.startsWith('gone')) return { kind: 'dropped', reason: 'customer_deleted' }
      const before = state.get(id) ?? { distinct_id: id, events: 0, total: 0, version: 0 }
      const count = written.get(id) ?? { ...before, version: before.version + 1 }
      count.events++
      count.total += event.payload.value ?? 0
      written.set(id, count)
      return { kind: 'applied', customerId: customerIdOf(id), merge: null, warnings: [] }
    })
    return { outcomes, written: [...written.values()] }
  },
  async write(tx, scope, { written }) {
    const saved = await tx.query(
      `insert into tally (scope_id, distinct_id, events, total, version)
      select $1, distinct_id, events, total, version
      from jsonb_to_recordset($2) as count (distinct_id text, events int, total float8, version int)
      on conflict (scope_id, distinct_id) do update
      set events = excluded.events, total = excluded.total, version = excluded.version
      where tally.version = excluded.version - 1
      returning 1`,
      [scope.scopeId, JSON.stringify(written)],
    )
    if (saved.length !== written.length) throw new StaleSlice()
  },
}

/** Leaves a row for every event it is called with; a second one is an error. */
export const hear: Consumer = async (tx: Tx, scope: Scope, slice: LaneEvent[]) => {
  await tx.query(
    `insert into heard (scope_id, pos, uuid, live)
    select $1, pos, uuid, live
    from jsonb_to_recordset($2) as event (pos bigint, uuid uuid, live bool)`,
    [scope.scopeId, JSON.stringify(slice.map(({ pos, uuid, live }) => ({ pos: String(pos), uuid, live })))],
  )
}

export function customerIdOf(distinctId: string): string {
  return uuidV5('6ba7b810-9dad-11d1-80b4-00c04fd430c8', distinctId)
}

export async function createTally(pool: Pool): Promise<void> {
  await pool.query(
    `create table tally (scope_id int, distinct_id text, events int, total float8, version int, primary key (scope_id, distinct_id))`,
  )
  await pool.query('create table heard (scope_id int, pos bigint, uuid uuid, live bool, primary key (scope_id, uuid))')
}

/** Events and sum of values by distinct id. */
export async function tallied(pool: Pool, scope: Scope): Promise<Record<string, [number, number]>> {
  const counts = await pool.query<Count>('select distinct_id, events, total from tally where scope_id = $1', [
    scope.scopeId,
  ])
  return Object.fromEntries(counts.map(({ distinct_id, events, total }) => [distinct_id, [events, total]]))
}

/** What the projection, the consumer and the tables of the lane say of one scope; all of it agrees or the lane is wrong. */
export async function effects(
  pool: Pool,
  { scopeId }: Scope,
): Promise<{ uuid: string; pos: bigint; value: number | null }[]> {
  const [sums] = await pool.query<Record<string, bigint | null>>(
    `select
      (select count(*) from event where scope_id = $1) as events,
      (select count(*) from event_seen where scope_id = $1) as seen,
      (select count(*) from heard where scope_id = $1) as heard,
      (select count(*) from event join event_seen using (scope_id, uuid, pos) join heard using (scope_id, uuid, pos)
        where scope_id = $1) as joined,
      (select coalesce(sum(events), 0) from tally where scope_id = $1) as tallied,
      (select count(*) from command where scope_id = $1) as commands,
      (select pos from lane where id = $1) as pos`,
    [scopeId],
  )
  const { events, commands, pos, ...others } = sums ?? {}
  for (const [name, count] of Object.entries(others)) {
    if (count !== events) throw new Error(`${name}: ${count}, events: ${events}`)
  }
  if ((pos ?? 0n) !== (events ?? 0n) + (commands ?? 0n))
    throw new Error(`positions have gaps: ${pos} of ${events} + ${commands}`)
  return pool.query('select uuid, pos, value from event where scope_id = $1 order by pos', [scopeId])
}

async function readTally(sql: Sql, { scopeId }: Scope, events: LoggedEvent[]): Promise<Count[]> {
  const ids = [...new Set(events.map(({ distinctId }) => distinctId))]
  return sql.query<Count>(
    'select distinct_id, events, total, version from tally where scope_id = $1 and distinct_id = any ($2)',
    [scopeId, texts(ids)],
  )
}

function tallies(counts: Count[]): Tallies {
  return new Map(counts.map((count) => [count.distinct_id, count]))
}

export interface RunningLanes extends AsyncDisposable {
  /** Every committed slice so far. */
  slices: SliceReport[]
  /** Resolves when `done` holds, asked after every slice and now. */
  until: (done: (slices: SliceReport[]) => boolean) => Promise<void>
  /** Resolves when so many rows of the log were taken. */
  taken: (rows: number) => Promise<void>
}

/** A lane worker over the tally; stops when disposed. */
export function runTally(
  url: string,
  options: Partial<Parameters<typeof runLanes<Tallies, TallyDecision>>[0]> = {},
): RunningLanes {
  const stop = new AbortController()
  const slices: SliceReport[] = []
  const waiting = new Set<() => void>()
  const running = runLanes({
    ...{ url, projection: tally, consumers: [hear], clock: systemClock, log: silent, signal: stop.signal },
    observe(slice) {
      slices.push(slice)
      for (const check of waiting) check()
    },
    ...options,
  })
  const until: RunningLanes['until'] = (done) =>
    new Promise((resolve) => {
      const check = () => {
        if (!done(slices)) return
        waiting.delete(check)
        resolve()
      }
      waiting.add(check)
      check()
    })
  return {
    slices,
    until,
    taken: (rows) => until(() => slices.reduce((sum, { read }) => sum + read, 0) >= rows),
    async [Symbol.asyncDispose]() {
      stop.abort()
      await running
    },
  }
}
