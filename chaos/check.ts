import { isDeepStrictEqual } from 'node:util'
import type { Expectation, Operation } from './expectation.ts'
import { type Counter, counters } from './items.ts'
import type { Person } from './model.ts'
import { spenders } from './turns.ts'

/** What the database holds, read after everything has settled. */
export interface Stored {
  events: Iterable<StoredEvent>
  /** Live customers by each of their distinct ids. */
  people: Map<string, Person>
  operations: Map<string, StoredOperation>
  /** Standings with the Feature that is spent, by distinct id. */
  accounts: Map<string, Account>
  /** Positions that two events share. */
  sharedPositions: number
  /** What the ledger's own verification objects to. */
  findings: string[]
}

export interface StoredEvent {
  uuid: string
  /** How often it is among the events, among the seen uuids and, where one copy more is none too many, in the log. */
  rows: number
  seen: number
  logged: number
}

export interface StoredOperation {
  mode: 'consume' | 'set_usage'
  quantity: number
  accepted: boolean
  code: string
  balance: number | null
  occurredAtMs: number
}

/** Units used by the counter, drawn by the entries, granted and left by the grants. */
export interface Account {
  used: number
  drawn: number
  granted: number
  remaining: number
}

export interface Verdict {
  lost: number
  doubled: number
  /** Everything that is wrong, in words, that which is counted included. */
  faults: string[]
}

/** Holds what is stored against what was promised. */
export function check(expectation: Expectation, stored: Stored): Verdict {
  const verdict: Verdict = { lost: 0, doubled: 0, faults: [...expectation.faults] }
  const totals = checkEvents(expectation, stored, verdict)
  checkCounters(totals, stored, verdict)
  checkStories(expectation, stored, verdict)
  checkOperations(expectation, stored, verdict)
  checkAccounts(expectation, stored, verdict)
  checkDeleted(expectation, stored, verdict)
  if (stored.sharedPositions > 0) verdict.faults.push(`${stored.sharedPositions} positions have two events`)
  verdict.faults.push(...stored.findings.map((finding) => `ledger: ${finding}`))
  return verdict
}

type Totals = Record<Counter, Map<string, number>>

/** Gives what the stored events add up to: also those that were sent only once and whose answer was lost. */
function checkEvents({ events, deleted }: Expectation, stored: Stored, verdict: Verdict): Totals {
  const totals: Totals = { n: new Map(), h: new Map() }
  const missing = new Set(events.keys())
  for (const { uuid, rows, seen, logged } of stored.events) {
    const sent = events.get(uuid)
    if (!sent) {
      // The log also holds what the service itself records.
      if (rows > 0) verdict.faults.push(`event ${uuid} is stored and was never sent`)
      continue
    }
    if (rows > 1 || seen > 1) {
      verdict.doubled++
      verdict.faults.push(`event ${uuid} is stored ${rows} times and seen ${seen} times`)
    }
    if (rows > 0 && seen > 0 && logged > 0) missing.delete(uuid)
    const { effect, distinctId } = sent
    if (rows > 0 && effect.effect === 'count') add(totals[effect.counter], distinctId, effect.amount)
  }
  for (const uuid of missing) {
    const { acknowledged, distinctId } = events.get(uuid) ?? { acknowledged: false, distinctId: '' }
    if (!acknowledged || deleted.has(distinctId)) continue
    verdict.lost++
    verdict.faults.push(`event ${uuid} of ${distinctId} was acknowledged and is not stored, seen and logged`)
  }
  return totals
}

function checkCounters(totals: Totals, { people }: Stored, verdict: Verdict): void {
  for (const distinctId of counters) {
    for (const counter of ['n', 'h'] as const) {
      const wanted = totals[counter].get(distinctId) ?? 0
      const found = people.get(distinctId)?.properties[counter] ?? 0
      compare(verdict, `${distinctId}: ${counter}`, { wanted, found: Number(found) })
    }
  }
}

function checkStories({ stories }: Expectation, { people }: Stored, verdict: Verdict): void {
  for (const model of stories.values()) {
    for (const wanted of model.people()) {
      const found = people.get(wanted.distinctIds[0] ?? '')
      const [want, have] = [sorted(wanted), found && sorted(found)]
      if (isDeepStrictEqual(want, have)) continue
      verdict.faults.push(`the model says ${JSON.stringify(want)}, stored is ${JSON.stringify(have)}`)
    }
  }
}

function sorted({ distinctIds, identified, properties }: Person): Person {
  return { distinctIds: distinctIds.toSorted(), identified, properties: { ...properties } }
}

function checkOperations({ operations }: Expectation, stored: Stored, verdict: Verdict): void {
  for (const [operationId, operation] of operations) {
    const saved = stored.operations.get(operationId)
    if (saved === undefined) {
      verdict.lost++
      verdict.faults.push(`operation ${operationId} was answered and is not saved`)
    } else if (!isDeepStrictEqual(saved, answered(operation))) {
      verdict.faults.push(
        `operation ${operationId} was answered ${JSON.stringify(operation.answer)}, saved is ${JSON.stringify(saved)}`,
      )
    }
  }
  for (const operationId of stored.operations.keys()) {
    if (!operations.has(operationId)) verdict.faults.push(`operation ${operationId} is saved and was never answered`)
  }
}

function answered({ spend, answer }: Operation): Record<string, unknown> {
  const { mode, quantity } = spend
  const { accepted, code, balance, occurredAtMs } = answer
  return { mode, quantity, accepted, code, balance, occurredAtMs }
}

/** Units used are those of the accepted operations, or the largest accepted total where totals are sent. */
function checkAccounts({ operations, granted }: Expectation, { accounts, people }: Stored, verdict: Verdict): void {
  // Customers that became one have one account.
  const nameOf = (distinctId: string) => people.get(distinctId)?.distinctIds.toSorted().at(0) ?? distinctId
  const wanted = new Map<string, number>(spenders.map((spender) => [spender, 0]))
  for (const { spend, answer } of operations.values()) {
    if (answer.accepted !== true) continue
    const { quantity, mode } = spend
    const customer = nameOf(spend.customer)
    const before = wanted.get(customer) ?? 0
    wanted.set(customer, mode === 'consume' ? before + quantity : Math.max(before, quantity))
  }
  const given = new Map<string, number>()
  for (const [distinctId, units] of granted) add(given, nameOf(distinctId), units)
  for (const [customer, used] of wanted) {
    const units = given.get(customer) ?? 0
    const found = accounts.get(customer) ?? { used: 0, drawn: 0, granted: 0, remaining: 0 }
    compare(verdict, `${customer}: units used`, { wanted: used, found: found.used })
    compare(verdict, `${customer}: units drawn`, { wanted: used, found: found.drawn })
    compare(verdict, `${customer}: units granted`, { wanted: units, found: found.granted })
    compare(verdict, `${customer}: units taken from grants`, { wanted: used, found: units - found.remaining })
  }
}

function checkDeleted({ deleted }: Expectation, { people }: Stored, verdict: Verdict): void {
  for (const distinctId of deleted) {
    if (people.has(distinctId)) verdict.faults.push(`${distinctId} was deleted and is a customer`)
  }
}

/** Too little was lost on the way, too much was applied twice. */
function compare(verdict: Verdict, what: string, { wanted, found }: { wanted: number; found: number }): void {
  if (found === wanted) return
  if (found < wanted) verdict.lost++
  else verdict.doubled++
  verdict.faults.push(`${what}: ${wanted} by the record, ${found} stored`)
}

function add(totals: Map<string, number>, key: string, amount: number): void {
  totals.set(key, (totals.get(key) ?? 0) + amount)
}
