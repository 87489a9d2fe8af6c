/**
 * `npm run bench:queries`: stores events as the lane leaves them and measures what asking about them costs, and what asking
 * costs those who send events meanwhile. `--events 5000000 --repeats 7 --seconds 10 --pairs 3`.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { Pool } from '../src/db/pool.ts'
import { must } from '../src/kernel/assert.ts'
import { type Asker, ask, askAgain, openAsker } from './askers.ts'
import { jobOf } from './cases.ts'
import { idPrefix } from './ids.ts'
import { measure } from './measure.ts'
import { readOptions } from './options.ts'
import { checkpoint, countEntries, fillEvents } from './queries-store.ts'
import { type FirstRun, type Service, startService } from './service.ts'
import * as store from './store.ts'

const { values } = parseArgs({
  options: {
    events: { type: 'string', default: '5000000' },
    repeats: { type: 'string', default: '7' },
    seconds: { type: 'string', default: '10' },
    pairs: { type: 'string', default: '3' },
  },
})
const [events, repeats, seconds] = [Number(values.events), Number(values.repeats), Number(values.seconds)]
const pairs = Number(values.pairs)
const dayMs = 86_400_000
const days = 60
/** Events a second that are sent while others ask. */
const ratePerS = 1000
/** Each may have five questions at a time. */
const crowdWorkspaces = 10

await using service = await startService()
await using db = new Pool(service.databaseUrl('turnpike'), {
  name: 'bench',
  max: 1,
  settings: { statement_timeout: '0' },
})
const { firstRun } = service
const demo: Asker = {
  url: firstRun.workspace_base_url,
  secretKey: firstRun.secret_key,
  projectId: firstRun.project_id,
}
const scopeId = await store.scopeOf(db, firstRun.project_id)
const end = Math.floor(Date.parse('2026-06-01T00:00:00Z') / dayMs) * dayMs
console.log(`storing ${events} events`)
const customerId = await fillEvents(db, { scopeId, events, start: end - days * dayMs, end })

const iso = (at: number) => new Date(at).toISOString()
const month = { start: iso(end - 30 * dayMs), end: iso(end) }
/** No edge of a slot: the rows are asked. */
const oddMonth = { start: iso(end - 30 * dayMs + 1), end: iso(end) }
const daily = {
  type: 'trend',
  time_range: month,
  interval: 'day',
  series: [{ event: 'event_1', measure: { type: 'count' } }],
}
const funnel = {
  ...{ type: 'funnel', time_range: { start: iso(end - days * dayMs), end: iso(end) } },
  ...{ window: { value: 7, unit: 'day' }, start: 'first' },
  steps: [{ event: 'event_1' }, { event: 'event_2' }, { event: 'event_3' }],
}
const asked: [name: string, aimMs: number | null, call: () => Promise<Response>][] = [
  ['the customer alone, what any answer costs', null, () => get(`/customers/cus_${customerId}`)],
  ['count per day, 30 days, from slots', 10, () => ask(demo, daily)],
  ['count per day, 30 days, from rows', 300, () => ask(demo, { ...daily, time_range: oddMonth })],
  [
    'count per day, 30 days, with a filter',
    null,
    () => ask(demo, { ...daily, filters: [{ scope: 'event', property: 'plan', op: 'eq', value: 'pro' }] }),
  ],
  [
    'customers per day, 30 days',
    null,
    () => ask(demo, { ...daily, series: [{ event: 'event_1', measure: { type: 'unique_customers' } }] }),
  ],
  ['funnel of 3 steps, 60 days, first start', 1500, () => ask(demo, funnel)],
  ['the same from any start', null, () => ask(demo, { ...funnel, start: 'any' })],
  [
    'the same from any start, with nothing between',
    null,
    () => ask(demo, { ...funnel, start: 'any', order: 'strict' }),
  ],
  ['timeline of one customer', 20, () => get(`/customers/cus_${customerId}/events`)],
  ['newest events', 20, () => get('/events?limit=100')],
  ['newest events of one name', 20, () => get('/events?limit=100&event=event_3')],
  ['events by position', 20, () => get('/events?limit=100&sort=position')],
]
const counted = await medianOf(async () => {
  const startedAt = performance.now()
  await countEntries(
    db,
    scopeId,
    funnel.steps.map(({ event }) => event),
  )
  return performance.now() - startedAt
})
console.log(`${'counting the index entries of 3 names'.padEnd(46)} ${counted.toFixed(1).padStart(9)} ms`)
for (const [name, aimMs, call] of asked) {
  const median = await medianOf(() => timed(call))
  const shown = Number.isFinite(median) ? median.toFixed(1) : 'over 10 s'
  console.log(`${name.padEnd(46)} ${shown.padStart(9)} ms${aimMs === null ? '' : `  (aim ${aimMs})`}`)
}

const crowd = await openCrowd()
const five = Array.from({ length: 5 }, () => () => askAgain(demo, funnel))
/** Of a tenth of the events each: from any start, so that it is no light one. */
const heavy = { ...funnel, start: 'any' }
const fifty = crowd.flatMap((asker) => five.map(() => () => askAgain(asker, heavy)))
await checkpoint(db)
await intake([])
const rounds = { alone: [] as Intake[], five: [] as Intake[], fifty: [] as Intake[] }
for (let pair = 0; pair < pairs; pair++) {
  rounds.alone.push(await intake([]))
  rounds.five.push(await intake(five))
  rounds.fifty.push(await intake(fifty))
}
const alone = middle(rounds.alone.map(({ p99Ms }) => p99Ms))
console.log(`/event at ${ratePerS}/s, p99, median of ${pairs}: alone ${alone.toFixed(1)} ms`)
for (const [askers, seen] of [
  [5, rounds.five],
  [50, rounds.fifty],
] as const) {
  const ms = middle(seen.map(({ p99Ms }) => p99Ms))
  const answers = middle(seen.map((round) => round.answers))
  console.log(
    `  beside ${askers} askers of a funnel ${ms.toFixed(1)} ms, ${(ms / alone).toFixed(2)} of alone; ${answers} answers`,
  )
}

/** Ten workspaces more, which together have as many events as the first. */
async function openCrowd(): Promise<Asker[]> {
  const askers: Asker[] = []
  for (let n = 0; n < crowdWorkspaces; n++) {
    const { asker, scopeId } = await openAsker(db, demo.url, `Asker ${n}`)
    await fillEvents(db, { scopeId, events: Math.ceil(events / crowdWorkspaces), start: end - days * dayMs, end })
    askers.push(asker)
  }
  for (const asker of askers) {
    // The service hears of a new workspace when it looks next.
    while ((await ask(asker, daily)).status === 401) await sleep(100)
  }
  return askers
}

interface Intake {
  p99Ms: number
  /** What was asked meanwhile and answered. */
  answers: number
}

/** What those who send events wait while each of `meanwhile` is done over and over. */
async function intake(meanwhile: readonly (() => Promise<void>)[]): Promise<Intake> {
  let answers = 0
  const counted = meanwhile.map((look) => async () => {
    await look()
    answers++
  })
  const apiKey = must(keyOf(firstRun), 'the demo has an app')
  const call = {
    server: 'turnpike',
    apiKey,
    idPrefix: idPrefix(Math.round(performance.timeOrigin + performance.now()), 1),
  } as const
  const options = { ...readOptions([]), seconds }
  const { port } = service as Service
  const { outcome } = await measure({ ...jobOf('event', call, options), ratePerS, port }, counted)
  if (outcome.wrong > 0) throw new Error(`no figures: ${outcome.complaints.join('\n')}`)
  return { p99Ms: outcome.p99Ms, answers }
}

function keyOf({ apps }: FirstRun): string | undefined {
  return apps[0]?.keys.test
}

/** Of `repeats` calls after one that does not count. */
async function medianOf(call: () => Promise<number>): Promise<number> {
  await call()
  const times: number[] = []
  for (let i = 0; i < repeats; i++) times.push(await call())
  return middle(times)
}

function middle(times: readonly number[]): number {
  return must(times.toSorted((a, b) => a - b)[Math.floor(times.length / 2)], 'it was timed')
}

async function timed(call: () => Promise<Response>): Promise<number> {
  const startedAt = performance.now()
  const response = await call()
  const text = await response.text()
  const ms = performance.now() - startedAt
  if (response.status === 503) return Number.POSITIVE_INFINITY
  if (response.status !== 200) throw new Error(`answered ${response.status}: ${text.slice(0, 500)}`)
  return ms
}

function get(path: string): Promise<Response> {
  return fetch(`${firstRun.workspace_base_url}${path}`, { headers: headers() })
}

function headers(): Record<string, string> {
  return { authorization: `Bearer ${firstRun.secret_key}`, 'x-service-env': 'test' }
}
