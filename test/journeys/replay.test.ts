import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { Told } from '../../src/journeys/apply/work.ts'
import { next } from '../../src/journeys/engine/next.ts'
import {
  completed,
  dayMs,
  enrolment,
  eventId,
  hourMs,
  section,
  started,
  step,
  t0,
} from '../../src/journeys/engine/testing/a-plan.ts'
import type { PinnedPlan } from '../../src/journeys/plan.ts'
import type { Effect, Facts, Input, Journey } from '../../src/journeys/types.ts'
import type { Scope } from '../../src/tenancy/index.ts'
import { newJourneyId, openJourneys } from './world.ts'

const world = await openJourneys()
after(() => world[Symbol.asyncDispose]())

const isGold = { type: 'User', op: 'eq', key: 'tier', value: { type: 'String', value: 'gold' } }
const parts = {
  entry: 'ask',
  sections: { offer: section('offer', { outcomes: { done: 'wait' } }) },
  steps: {
    ask: step(
      { type: 'branch', branches: [{ id: 'gold', condition: { ir_version: 1, expr: isGold } }] },
      { gold: 'offer', default: null },
      true,
    ),
    wait: step(
      { type: 'wait_for_event', eventName: 'paid', trust: 'any', timeoutMs: dayMs },
      { matched: 'set', timeout: null },
    ),
    set: step({ type: 'set_properties', set: { paid: true } }, { next: 'rest' }),
    rest: step({ type: 'delay', durationMs: hourMs }, { next: null }),
  },
}

const paid = (receivedAt: number): Input => ({
  kind: 'event',
  event: { uuid: eventId(50), name: 'paid', distinctId: 'u', at: receivedAt, receivedAt, properties: {} },
  trust: 'device',
})

/** All that happens to one customer, in order. */
function story(plan: PinnedPlan, customerId: string): { journeyId: string; told: Told[] } {
  const journeyId = newJourneyId()
  const enrol = enrolment({ journeyId, customerId, occurrence: journeyId })
  const inputs: Input[] = [
    ...([
      started(plan),
      started(plan),
      { kind: 'hold' },
      completed(plan, 'done'),
      { kind: 'resume' },
      paid(t0 + 20),
      paid(t0 + 20),
    ] as Input[]),
  ]
  return { journeyId, told: [{ journeyId, plan, input: enrol }, ...inputs.map((input) => ({ journeyId, input }))] }
}

async function ending(scope: Scope, journeyId: string) {
  const { id, customerId, occurrence, ...journey } = await world.journey(scope, journeyId)
  assert.equal(id, journeyId)
  return { ...journey, named: [customerId.length, occurrence.length] }
}

test('2 the log in the tables, replayed, gives the stored state and effects', async () => {
  const scope = await world.scope()
  const plan = await world.plan(scope, parts)
  const customerId = await world.customer(scope, 'u', { tier: 'gold', other: 'x'.repeat(100) })
  const { journeyId, told } = story(plan, customerId)
  for (const [i, one] of told.entries()) await world.tell(scope, [one], t0 + 30 + i)
  await world.fire(t0 + dayMs)
  const { transitions } = await world.rows(scope)
  let journey: Journey | null = null
  for (const [i, { rev, at_ms, input, facts, effects }] of transitions.entries()) {
    assert.equal(rev, i + 1)
    const noted = JSON.parse(typeof facts === 'string' ? facts : '{}') as Facts
    assert.ok(!JSON.stringify(noted).includes('xxx'), 'only what the plan reads is noted')
    const outcome = next(plan, journey, JSON.parse(String(input)) as Input, noted, Number(at_ms))
    if (outcome.needs) assert.fail('its facts were noted')
    assert.deepEqual(JSON.parse(JSON.stringify(outcome.effects)), JSON.parse(String(effects)) as Effect[])
    journey = outcome.journey
  }
  assert.deepEqual(journey, await world.journey(scope, journeyId))
  assert.deepEqual([journey?.status, journey?.rev], ['ended', 7])
})

test('1 inputs of several customers in any order leave each where its own leave it, one by one or together', async () => {
  const scope = await world.scope()
  const plan = await world.plan(scope, parts)
  const people = await Promise.all([1, 2, 3].map(() => world.customer(scope, undefined, { tier: 'gold' })))
  const [alone, ...mixed] = people.map((customerId) => story(plan, customerId))
  if (!alone) assert.fail('there are three')
  for (const one of alone.told) await world.tell(scope, [one], t0 + 30)
  const expected = await ending(scope, alone.journeyId)
  // In turns, and all at once.
  const turns = alone.told.flatMap((_, i) => mixed.flatMap(({ told }) => told.slice(i, i + 1)))
  await world.tell(scope, turns, t0 + 30)
  for (const { journeyId } of mixed) assert.deepEqual(await ending(scope, journeyId), expected)
})
