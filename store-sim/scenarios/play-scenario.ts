import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Pace, pass, setPace } from './pace.ts'
import type { Expectation, Scenario, Step, Submission } from './scenario.ts'
import { ask, type Service, type Stage, setStage } from './stage.ts'

export interface Theatre {
  /** Address of the simulator. */
  sim: string
  service: Service
  stop?: () => Promise<void>
  /** May come back under another address. */
  start?: () => Promise<Service>
}

export interface Verdict {
  name: string
  passed: boolean
  why?: string
}

/** How long the service has to learn what the store said; and for how long it must not change its mind. */
const patienceMs = 15_000
const lookEveryMs = 100
const steadyMs = 300

/** Plays one scenario in a project of its own; the first step that goes otherwise ends it. */
export async function playScenario(theatre: Theatre, scenario: Scenario): Promise<Verdict> {
  const { name } = scenario
  try {
    const stage = await setStage(theatre.sim, theatre.service, scenario.store, scenario.settings)
    const pace = await setPace(theatre.sim, stage, stage.followsClock)
    const held = new Map<string, Held>()
    for (const [i, step] of scenario.steps.entries()) {
      const why = await play({ theatre, stage, pace, held }, step).catch((error: unknown) => String(error))
      if (why !== undefined) return { name, passed: false, why: `step ${i + 1}, ${JSON.stringify(step)}: ${why}` }
    }
    return { name, passed: true }
  } catch (error) {
    return { name, passed: false, why: String(error) }
  } finally {
    await ask(theatre.sim, 'PUT', '/sim/faults', { faults: [] }).catch(() => {})
  }
}

interface Playing {
  theatre: Theatre
  stage: Stage
  pace: Pace
  held: Map<string, Held>
}

interface Held extends Record<string, unknown> {
  id: string
  purchase: Record<string, unknown>
}

/** Undefined: as it should. */
async function play({ theatre, stage, pace, held }: Playing, step: Step): Promise<string | undefined> {
  const { sim } = theatre
  const at = `/sim/${stage.store}/purchases`
  if ('buy' in step) {
    const { as, ...purchase } = step.buy
    held.set(as, await ask(sim, 'POST', at, { app: stage.name, ...purchase }))
  } else if ('verb' in step) {
    const { of, does, with: body = {}, as = of } = step.verb
    held.set(as, await ask(sim, 'POST', `${at}/${known(held, of).id}/${does}`, filled(body, held)))
  } else if ('submit' in step) return submit(stage, known(held, step.submit.of), step.submit)
  else if ('clock' in step) await pass(sim, stage, pace, step.clock.by)
  else if ('identify' in step) {
    const { from, to } = step.identify
    const event = { event: '$identify', distinct_id: to, $anon_distinct_id: from, uuid: randomUUID() }
    const { status, body } = await post(stage, '/event', event)
    return status < 300 ? undefined : `it answered ${status} ${JSON.stringify(body)}`
  } else if ('faults' in step) await ask(sim, 'PUT', '/sim/faults', { faults: step.faults })
  else if ('service' in step) {
    if (theatre.stop === undefined || theatre.start === undefined) return 'this service is not ours to stop'
    if (step.service === 'stop') await theatre.stop()
    else theatre.service = await theatre.start()
  } else if ('acknowledged' in step) return until(() => isAcknowledged(sim, stage, known(held, step.acknowledged)))
  else if ('entitled' in step) return expectAll(stage, step.entitled)
  else return until(() => holdInvariants(sim, stage))
  return undefined
}

async function submit(stage: Stage, { purchase }: Held, submission: Submission): Promise<string | undefined> {
  const { customer, status, code, detail, replay, consume, environment = 'test' } = submission
  const more = consume === undefined ? {} : { consume_purchase: consume }
  const answer = await post(
    stage,
    '/purchase',
    { distinct_id: customer, ...purchase, ...more },
    stage.keys[environment],
  )
  const { body } = answer
  const isExpected =
    answer.status === status &&
    (code === undefined || body.code === code) &&
    (detail === undefined || body.detail === detail) &&
    (replay === undefined || body.idempotent_replay === replay)
  return isExpected ? undefined : `it answered ${answer.status} ${JSON.stringify(body)}`
}

async function expectAll(stage: Stage, expected: Expectation[]): Promise<string | undefined> {
  const look = async () => {
    for (const expectation of expected) {
      const why = await differs(stage, expectation)
      if (why !== undefined) return why
    }
    return undefined
  }
  const why = await until(look)
  if (why !== undefined) return why
  await sleep(steadyMs)
  return look()
}

async function differs(
  stage: Stage,
  { customer, feature, allowed, balance }: Expectation,
): Promise<string | undefined> {
  const { status, body } = await post(stage, '/entitled', { customerId: customer, featureId: feature })
  const isExpected = body.allowed === allowed && (balance === undefined || body.balance === balance)
  return isExpected ? undefined : `${customer} and ${feature}: ${status} ${JSON.stringify(body)}`
}

async function isAcknowledged(sim: string, stage: Stage, { id }: Held): Promise<string | undefined> {
  const { acknowledged } = await ask(sim, 'POST', `/sim/${stage.store}/purchases/${id}/re-sign`)
  return acknowledged === true ? undefined : `${id} is not acknowledged`
}

async function holdInvariants(sim: string, { name }: Stage): Promise<string | undefined> {
  const found = await ask(sim, 'GET', '/sim/invariants')
  const mine = [...found.paid_without_access, ...found.access_without_paid].filter(({ app }) => app === name)
  return mine.length === 0 ? undefined : JSON.stringify(mine)
}

async function until(look: () => Promise<string | undefined>): Promise<string | undefined> {
  const end = performance.now() + patienceMs
  for (;;) {
    const why = await look()
    if (why === undefined || performance.now() > end) return why
    await sleep(lookEveryMs)
  }
}

async function post({ origin, keys }: Stage, path: string, body: object, apiKey = keys.test) {
  const response = await fetch(`${origin}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ apiKey, ...body }),
  })
  // biome-ignore lint/suspicious/noExplicitAny: answers of many shapes
  return { status: response.status, body: (await response.json()) as any }
}

function filled(body: Record<string, unknown>, held: Map<string, Held>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(body).map(([name, value]) => {
      const [, as, field] = /^\$(\w+)\.(\w+)$/.exec(String(value)) ?? []
      return [name, as === undefined || field === undefined ? value : known(held, as)[field]]
    }),
  )
}

function known(held: Map<string, Held>, as: string): Held {
  const one = held.get(as)
  if (one === undefined) throw new Error(`no step before made ${as}`)
  return one
}
