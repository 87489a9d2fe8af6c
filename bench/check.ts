import type { Pool } from '../src/db/pool.ts'
import { customersOf, itemsOf, type ServerName } from './cases.ts'
import { customerOf, distinctIdOf } from './ids.ts'
import type { CaseName } from './options.ts'
import { contestedCustomer, featureId } from './seed.ts'
import { readDrawn, readEvents, readOperations, readSpent, type Stored } from './store.ts'

/** A round whose effects must be found: every id from 0 to sent − 1 was acknowledged, unless it was contested. */
export interface Done {
  server: ServerName
  name: CaseName
  idPrefix: string
  sent: number
  /** Units accepted; differs from `sent` only where units ran out. */
  accepted: number
  contested: boolean
}

/** What is in the databases against what was acknowledged. Gives what does not agree, in words. */
export async function checkStored(
  rounds: Done[],
  pools: { turnpike: Pool; naive: Pool },
  scopeId: number,
): Promise<string[]> {
  const faults: string[] = []
  for (const round of rounds) {
    if (round.server === 'echo') continue
    const pool = pools[round.server]
    const found = isUsage(round.name) ? await checkUsage(pool, round) : await checkEvents(pool, round)
    faults.push(...found.map((fault) => `${round.server}, ${round.name}: ${fault}`))
  }
  return [...faults, ...(await checkCustomers(rounds, pools.turnpike, scopeId))]
}

/** Whether a case writes events or units; the others only read. */
export function isEvents(name: CaseName): boolean {
  return name === 'event' || name === 'batch'
}

export function isUsage(name: CaseName): boolean {
  return name.startsWith('consume')
}

async function checkEvents(pool: Pool, { server, name, idPrefix, sent }: Done): Promise<string[]> {
  const wanted = sent * itemsOf(name)
  const faults = disagreement('event', await readEvents(pool, 'event', idPrefix), wanted)
  if (server === 'naive') return faults
  const seen = disagreement('event_seen', await readEvents(pool, 'event_seen', idPrefix), wanted)
  // The log may hold an event twice (a COMMIT whose answer was lost is tried again); the lane removes it.
  const log = await readEvents(pool, 'event_log', idPrefix)
  const logged = disagreement('event_log', { ...log, rows: log.distinct }, wanted)
  return [...faults, ...seen, ...logged]
}

async function checkUsage(pool: Pool, { idPrefix, accepted }: Done): Promise<string[]> {
  const operations = await readOperations(pool, idPrefix)
  const drawn = await readDrawn(pool, idPrefix)
  const faults = disagreement('operation', operations, accepted)
  if (operations.units !== accepted)
    faults.push(`operations say ${operations.units} units, ${accepted} were acknowledged`)
  if (drawn !== accepted) faults.push(`entries say ${drawn} units, ${accepted} were acknowledged`)
  return faults
}

/** The counter and the grants of every customer against what was acknowledged for that very customer. */
async function checkCustomers(rounds: Done[], pool: Pool, scopeId: number): Promise<string[]> {
  const wanted = new Map<string, number>()
  for (const { server, name, sent, accepted, contested } of rounds) {
    if (server !== 'turnpike' || !isUsage(name)) continue
    if (contested) add(wanted, contestedCustomer, accepted)
    else for (let n = 0; n < sent; n++) add(wanted, customerOf(n, customersOf(name)), 1)
  }
  const spent = await readSpent(pool, scopeId, featureId)
  const known = new Set(spent.map((customer) => customer.distinct_id))
  const missing = [...wanted.keys()].filter((id) => !known.has(id)).map((id) => `${id} spent but has no account`)
  const wrong = spent
    .filter(({ distinct_id, used, taken }) => used !== taken || used !== (wanted.get(distinct_id) ?? 0))
    .map(({ distinct_id, used, taken }) => {
      const acknowledged = wanted.get(distinct_id) ?? 0
      return `${distinct_id}: ${acknowledged} units acknowledged, ${used} on the counter, ${taken} out of grants`
    })
  return [...missing, ...wrong]
}

function add(counts: Map<string, number>, customer: number, units: number): void {
  const id = distinctIdOf(customer)
  counts.set(id, (counts.get(id) ?? 0) + units)
}

/** Only ids that were sent can be there, so as many different ones as were acknowledged are exactly those; once each. */
function disagreement(table: string, { rows, distinct }: Stored, wanted: number): string[] {
  if (rows === wanted && distinct === wanted) return []
  return [`${wanted} acknowledged, but ${table} has ${distinct} of them in ${rows} rows`]
}
