import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { isConnectionLoss, Pool } from '../../src/db/pool.ts'
import { completed, hourMs, section, step, t0 } from '../../src/journeys/engine/testing/a-plan.ts'
import { journeySettings } from '../../src/journeys/store/journey-store.ts'
import type { Scope } from '../../src/tenancy/index.ts'
import { type CutProxy, cutProxy } from '../harness/cut-proxy.ts'
import { openJourneys } from './world.ts'

const world = await openJourneys()
after(() => world[Symbol.asyncDispose]())
const { database } = world

interface Prepared {
  scope: Scope
  act: (url: string) => Promise<unknown>
}

const hook = { type: 'webhook', endpointId: 'whe_1', body: {}, timeoutMs: 1000, attempts: 2 }
const parts = {
  entry: 'd',
  sections: { offer: section('offer', { outcomes: { done: 'say' } }) },
  steps: {
    d: step({ type: 'delay', durationMs: hourMs }, { next: 'g' }),
    g: step({ type: 'grant_feature', featureId: 'credits', amount: 5 }, { next: 'p' }),
    p: step({ type: 'set_properties', increment: { n: 1 } }, { next: 'offer' }),
    say: step({ type: 'emit_event', eventName: 'said' }, { next: 'hook' }),
    hook: step(hook, { success: null, failure: null }),
  },
}

async function through<T>(url: string, work: (pool: Pool) => Promise<T>): Promise<T> {
  await using own = new Pool(url, { name: 'cut', max: 1, settings: journeySettings })
  return await work(own)
}

/** PostgreSQL notices a lost connection in its own time: until then its timers and journeys are held. */
async function untilGone(): Promise<void> {
  const left = `select pid from pg_stat_activity where datname = current_database() and application_name = 'turnpike cut'`
  while ((await world.pool.query(left)).length > 0) await new Promise((resolve) => setTimeout(resolve, 5))
}

const actions: Record<string, () => Promise<Prepared>> = {
  async 'a timer that grants, writes properties and offers a leg'() {
    const scope = await world.scope()
    await world.feature(scope, 'credits')
    const plan = await world.plan(scope, parts)
    await world.start(scope, plan, await world.customer(scope), t0)
    return { scope, act: (url) => through(url, (pool) => world.fire(t0 + hourMs, pool)) }
  },
  async 'a report that emits an event and calls a webhook'() {
    const scope = await world.scope()
    const plan = await world.plan(scope, { ...parts, entry: 'offer' })
    const journeyId = await world.start(scope, plan, await world.customer(scope), t0)
    const told = [{ journeyId, input: completed(plan, 'done') }]
    return { scope, act: (url) => through(url, (pool) => world.tell(scope, told, t0 + 20, pool)) }
  },
}

/** What is left when it is over, without what is another in each world. */
async function outcome({ scope }: Prepared) {
  const { journeys, transitions, legs, timers, outbox, grants, events, enrolments } = await world.rows(scope)
  const [customer] = await world.pool.query<{ properties: object }>(
    'select properties from customer where scope_id = $1',
    [scope.scopeId],
  )
  return {
    journeys: journeys.map(({ status, rev, generation }) => [status, rev, generation]),
    transitions: transitions.map(({ rev, to_state }) => [rev, to_state]),
    legs: legs.map(({ generation, status }) => [generation, status]),
    timers: timers.map(({ kind, due_at_ms, attempts }) => [kind, due_at_ms, attempts]),
    outbox: outbox.map(({ rev, index }) => [rev, index]),
    grants: grants.map(({ amount, remaining }) => [amount, remaining]),
    events: events.map(({ payload }) => (JSON.parse(String(payload)) as { event: string }).event).toSorted(),
    ...{ counted: enrolments.map(({ count }) => count), properties: customer?.properties },
  }
}

for (const [name, prepare] of Object.entries(actions)) {
  test(`19 ${name}, with the connection lost before or after any statement, has the effects of a run without`, async () => {
    await using counting = await cutProxy(database.url)
    const whole = await prepare()
    await whole.act(counting.url)
    const expected = await outcome(whole)
    assert.ok(counting.statements >= 10, `only ${counting.statements} statements`)
    const cuts: ((proxy: CutProxy) => void)[] = []
    for (let n = 1; n <= counting.statements; n++) {
      cuts.push(
        (proxy) => proxy.cut(n, 'before'),
        (proxy) => proxy.cut(n, 'after'),
      )
    }
    let failures = 0
    for (const cut of cuts) {
      const prepared = await prepare()
      await using proxy = await cutProxy(database.url)
      cut(proxy)
      const error = await prepared.act(proxy.url).then(
        () => null,
        (reason: unknown) => reason,
      )
      if (error !== null) failures++
      assert.ok(error === null || isConnectionLoss(error), String(error))
      await untilGone()
      await prepared.act(database.url)
      assert.deepEqual(await outcome(prepared), expected)
    }
    assert.ok(failures > cuts.length / 2, `${failures} of ${cuts.length} were noticed`)
  })
}
