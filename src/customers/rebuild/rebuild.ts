import { asTx, Pool, type Tx } from '../../db/pool.ts'
import { applyCommand, laneSettings, selectHistory, selectLanePosition, selectWholeSince } from '../../events/index.ts'
import { rebuildFamilyMax, rebuildPageCustomers, rebuildPasses, rebuildTailMax } from '../../kernel/limits.ts'
import type { Scope } from '../../tenancy/index.ts'
import { type Difference, selectDifferences, selectPage, selectStandings } from './compare-store.ts'
import { isUnexplained, mendRecords, selectRelated } from './mend-store.ts'
import { replay, type Shadow } from './replay.ts'
import {
  createShadow,
  hideLive,
  lockLive,
  noteIncomplete,
  onLive,
  selectNewestDeletion,
  selectSchema,
} from './shadow-store.ts'

export interface RebuildOptions {
  /** Of the live database. */
  url: string
  pool: Pool
  tombstoneKey: Buffer
  /** Writes nothing. */
  check: boolean
  /** Every difference, with what became of it. */
  onFinding: (finding: Finding) => void
  signal?: AbortSignal
}

/** `left`: it was not mended, or only checked. */
export type Finding = Difference & { outcome: 'mended' | 'left' }

export interface Rebuilt {
  /** Compared, in the last pass. */
  customers: number
  mended: number
  /** Differ still. */
  different: number
  /** Created by a call and in no event or command since: there is nothing to compare them with. */
  kept: number
  /** Their history is not all there: not compared. */
  incomplete: number
}

/**
 * Makes the customers of a scope once more from the stored events and commands, in tables beside the live ones, and compares
 * both page by page while the lane stands still for the moment of a page. Where they differ, live rows become what the history
 * says, in that same moment, one family at a time: those that distinct ids join. Nobody is told, and nothing but customers and their
 * distinct ids changes.
 */
export async function rebuildCustomers(scope: Scope, options: RebuildOptions): Promise<Rebuilt> {
  const { url, pool } = options
  const schema = await selectSchema(pool)
  await using shadows = new Pool(url, {
    name: 'rebuild',
    max: 1,
    settings: { ...laneSettings, enable_sort: 'on', lock_timeout: '10s' },
  })
  return shadows.connected(async (client) => {
    await hideLive(client)
    const inShadow = transactionsOf(client)
    const live = await inShadow((tx) => createShadow(tx, scope, schema))
    const refused = new Set<bigint>()
    const onRefused = (pos: bigint, reason: string) => {
      refused.add(pos)
      options.onFinding({ customerId: '', field: `command.${pos}`, live: 'done', rebuilt: reason, outcome: 'left' })
    }
    const run: Run = {
      ...options,
      shadow: { client, scope, live, tombstoneKey: options.tombstoneKey, onRefused },
      inShadow,
      ...{ done: 0n, pass: 0, gaps: null },
    }
    await inShadow((tx) => noteGaps(tx, run))
    let total = await pass(run)
    let mended = total.mended
    // What was applied between two pages may have met a customer that was still wrong.
    for (let n = 1; n < rebuildPasses && total.mended > 0; n++) {
      total = await pass(run)
      mended += total.mended
    }
    return { ...total, mended, different: total.different + refused.size }
  })
}

/** An event's time is at most a day ahead of its receipt, by which its month is dropped. */
const clampMs = 86_400_000

interface Run extends RebuildOptions {
  shadow: Shadow
  inShadow: <T>(work: (tx: Tx) => Promise<T>) => Promise<T>
  /** The position up to which the shadow has come. */
  done: bigint
  /** What stays different is told in the first one. */
  pass: number
  /** What was known to be missing when ids were last noted as incomplete. */
  gaps: { wholeSince: number | null; deletion: bigint } | null
}

/** Months can be dropped and customers deleted while the history is read: to be asked after what was read of it. */
async function noteGaps(tx: Tx, run: Run): Promise<void> {
  const { scope, live } = run.shadow
  const wholeSince = await run.pool.connected((client) => selectWholeSince(client, scope))
  const deletion = await selectNewestDeletion(tx, live, scope)
  if (run.gaps?.wholeSince === wholeSince && run.gaps.deletion === deletion) return
  await noteIncomplete(tx, live, scope, wholeSince === null ? null : wholeSince + clampMs)
  run.gaps = { wholeSince, deletion }
}

async function pass(run: Run): Promise<Rebuilt> {
  run.pass++
  const total: Rebuilt = { customers: 0, mended: 0, different: 0, kept: 0, incomplete: 0 }
  for (let after: string | null = '00000000-0000-0000-0000-000000000000'; after !== null; ) {
    await catchUp(run)
    const from: string = after
    after = await run.inShadow(async (tx) => {
      await follow(run, await lockLive(tx, run.shadow.live, run.shadow.scope))
      await noteGaps(tx, run)
      return comparePage(tx, run, from, total)
    })
  }
  return total
}

/** Until so little is left that the lane can wait for it. */
async function catchUp(run: Run): Promise<void> {
  for (;;) {
    run.signal?.throwIfAborted()
    const end = await run.pool.connected((client) => selectLanePosition(client, run.shadow.scope))
    if (end - run.done <= BigInt(rebuildTailMax)) return
    await run.inShadow(() => step(run, end))
  }
}

async function follow(run: Run, through: bigint): Promise<void> {
  while (run.done < through) await step(run, through)
}

/** One slice. Positions of erased events are passed over. */
async function step(run: Run, through: bigint): Promise<void> {
  const { pool, shadow } = run
  const happened = await pool.connected((live) => selectHistory(live, shadow.scope, { after: run.done, through }))
  await replay(shadow, happened)
  run.done = happened.at(-1)?.pos ?? through
}

/** Gives where the next page begins; null behind the last. */
async function comparePage(tx: Tx, run: Run, after: string, total: Rebuilt): Promise<string | null> {
  const { shadow, tombstoneKey } = run
  const { scope, live } = shadow
  const ids = await selectPage(tx, live, scope, { after, limit: rebuildPageCustomers })
  const standings = await selectStandings(tx, live, scope, { ids, tombstoneKey })
  const compared: string[] = []
  for (const { id, deleted, incomplete, isLive, isRebuilt, bare } of standings) {
    if (deleted) continue
    if (incomplete) total.incomplete += isLive ? 1 : 0
    else if (!isRebuilt && bare) total.kept++
    else compared.push(id)
  }
  const differences = await selectDifferences(tx, live, scope, compared)
  const byCustomer = Map.groupBy(differences, ({ customerId }) => customerId)
  const mended = new Set<string>()
  for (const [customerId, found] of byCustomer) {
    // The journal says what was decided then, right or wrong: it stays.
    const mendable = found.filter(({ field }) => !field.startsWith('merge.'))
    const isMended = mendable.length > 0 && (mended.has(customerId) || (await mend(tx, run, customerId, mended)))
    for (const each of found) {
      const outcome = isMended && mendable.includes(each) ? 'mended' : 'left'
      if (outcome === 'mended' || run.pass === 1) run.onFinding({ ...each, outcome })
    }
    if (isMended) total.mended++
    if (!isMended || mendable.length < found.length) total.different++
  }
  total.customers += compared.length
  return ids.length < rebuildPageCustomers ? null : (ids.at(-1) ?? null)
}

/** False: live state says something that the history does not explain, so it stays as it is. */
async function mend(tx: Tx, run: Run, customerId: string, mended: Set<string>): Promise<boolean> {
  if (run.check) return false
  const { live, scope } = run.shadow
  let family = [customerId]
  for (let more = 0; more !== family.length && family.length <= rebuildFamilyMax; ) {
    more = family.length
    family = await selectRelated(tx, live, scope, family)
  }
  if (family.length > rebuildFamilyMax || (await isUnexplained(tx, live, scope, family))) return false
  const standings = await selectStandings(tx, live, scope, { ids: family, tombstoneKey: run.tombstoneKey })
  if (standings.some(({ deleted, incomplete }) => deleted || incomplete)) return false
  await onLive(tx, live, () => applyCommand(tx, scope, 'rebuild_customers', { customers: family.length }))
  await mendRecords(tx, live, scope, family)
  for (const id of family) mended.add(id)
  return true
}

function transactionsOf(client: Tx['client']): Run['inShadow'] {
  return async (work) => {
    await client.query('begin')
    try {
      const result = await work(asTx(client))
      await client.query('commit')
      return result
    } catch (error) {
      await client.query('rollback').catch(() => {})
      throw error
    }
  }
}
