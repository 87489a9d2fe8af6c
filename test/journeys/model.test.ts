import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { rm } from 'node:fs/promises'
import { after, test } from 'node:test'
import fc from 'fast-check'
import { anEvent } from '../app/project.ts'
import { device, server } from '../harness/a-draft.ts'
import { temporaryFolder } from '../harness/server.ts'
import { startService } from '../harness/service.ts'
import { type RunningTurnpike, runTurnpike } from '../harness/turnpike.ts'
import { checkAll } from './check-all.ts'
import { deviceDraft, newJourneyId, openStage, type Published, serverDraft } from './stage.ts'

const service = await startService()
const stage = await openStage(service)
const place = `?project_id=${stage.project.id}`
const folder = await temporaryFolder()

let started = 0
/** A worker of its own beside the one of the service, which dies without a word. */
function aWorker(): RunningTurnpike {
  const settings = { DATABASE_URL: service.databaseUrl, MASTER_KEY: Buffer.alloc(32, 7).toString('base64') }
  return runTurnpike({ dataDir: `${folder}/${++started}`, settings: { ...settings, ROLE: 'worker' } })
}
const workers = [aWorker(), aWorker()]
after(async () => {
  for (const worker of workers) await worker[Symbol.asyncDispose]()
  await service[Symbol.asyncDispose]()
  await rm(folder, { recursive: true })
})
await Promise.all(workers.map(({ url }) => url))

const api = { type: 'api' }
/** Waits, writes, says so and offers a leg. */
function longDraft(frequency: string, priority: number) {
  const draft = { ...serverDraft(api, { entry: { frequency: { type: frequency } } }), priority }
  const wait = { type: 'wait_for_event', eventName: 'paid', trust: 'any', timeoutMs: 3_600_000 }
  draft.graph.entry = 'wait'
  draft.graph.steps = [
    server('wait', wait, { matched: 'write', timeout: 'again' }),
    server('write', { type: 'set_properties', increment: { paid: 1 } }, { next: 'say' }),
    server('say', { type: 'emit_event', eventName: 'said' }, { next: 'again' }),
    device('again', { type: 'app_action', name: 'greet' }, { next: 'rest' }),
    server('rest', { type: 'delay', durationMs: 3_600_000 }, { next: null }),
  ]
  return draft
}
const drafts = [
  (priority: number) => ({ ...deviceDraft(), priority }),
  (priority: number) => longDraft('every_match', priority),
  (priority: number) => longDraft('one_time', priority),
]
const published: Published[] = []
for (const draft of drafts) published.push(await stage.publish(draft(1)))

const who = fc.nat(3)
const which = fc.nat(2)
type Act =
  | { do: 'publish'; of: number; inFlight: string }
  | { do: 'pause' | 'resume'; of: number }
  | { do: 'start'; who: number; of: number; key: number }
  | { do: 'begin' | 'complete'; who: number; slot: number }
  | { do: 'report'; who: number; generation: number; isDone: boolean }
  | { do: 'paid' | 'again' | 'tick' | 'delete'; who: number }
  | { do: 'merge'; who: number; source: number }
  | { do: 'crash' }
const act: fc.Arbitrary<Act> = fc.oneof(
  fc.record({
    do: fc.constant('publish' as const),
    of: which,
    inFlight: fc.constantFrom('finish', 'move_armed', 'stop'),
  }),
  fc.record({ do: fc.constantFrom('pause' as const, 'resume' as const), of: which }),
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant('start' as const),
      who,
      of: fc.constantFrom(1, 2),
      key: fc.nat(1),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constantFrom('begin' as const, 'complete' as const), who, slot: fc.nat(1) }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constant('report' as const), who, generation: fc.nat(2), isDone: fc.boolean() }),
  },
  { weight: 5, arbitrary: fc.record({ do: fc.constantFrom('paid' as const, 'again' as const, 'tick' as const), who }) },
  fc.record({ do: fc.constant('delete' as const), who }),
  { weight: 2, arbitrary: fc.record({ do: fc.constant('merge' as const), who, source: who }) },
  fc.record({ do: fc.constant('crash' as const) }),
)

/** One life of four customers. */
class Life {
  readonly people = [0, 1, 2, 3].map(() => randomUUID())
  readonly slots = [0, 1].map(() => newJourneyId())
  readonly deleted = new Set<string>()
  /** Journeys by customer and key of their starts. */
  readonly starts = new Map<string, string[]>()
  readonly #sent = new Map<number, object>()
  #publishing: Promise<unknown> = Promise.resolve()

  async act(act: Act): Promise<void> {
    switch (act.do) {
      case 'publish': {
        this.#publishing = this.#publishing.then(() => this.#publish(act.of, act.inFlight))
        await this.#publishing
        return
      }
      case 'pause':
      case 'resume': {
        const body = act.do === 'pause' ? { in_flight: 'hold' } : {}
        await this.#call('POST', `/experiences/${this.#of(act.of).id}/${act.do}${place}`, body, [200, 409])
        return
      }
      case 'start':
        return this.#start(act.who, act.of, act.key)
      case 'begin':
      case 'complete':
        return this.#device(act)
      case 'report':
        return this.#report(act.who, act.generation, act.isDone)
      case 'paid': {
        const event = anEvent(this.#name(act.who), { event: 'paid', uuid: randomUUID() })
        this.#sent.set(act.who, event)
        await this.#send(event)
        return
      }
      case 'again': {
        const event = this.#sent.get(act.who)
        if (event) await this.#send(event)
        return
      }
      case 'tick':
        for (const { id } of (await this.#journeys(act.who)).slice(0, 2)) {
          await this.#call('POST', `/journeys/${id}/advance`, undefined, [200, 404, 409])
        }
        return
      case 'delete': {
        const id = await this.#customer(act.who)
        if (id === undefined) return
        await this.#call('DELETE', `/customers/${id}`, undefined, [200, 404, 409, 410])
        this.deleted.add(id)
        return
      }
      case 'merge': {
        const id = await this.#customer(act.who)
        if (id === undefined || act.who === act.source) return
        const body = { source_distinct_id: this.#name(act.source), force: true }
        await this.#call('POST', `/customers/${id}/merge`, body, [200, 400, 404, 409, 410])
        return
      }
      case 'crash': {
        const worker = workers.shift()
        worker?.process.kill('SIGKILL')
        await worker?.ended
        workers.push(aWorker())
      }
    }
  }

  async #publish(of: number, inFlight: string): Promise<void> {
    const draft = drafts[of]?.(1 + (++started % 900))
    if (draft) published[of] = await this.#of(of).publish(draft, { in_flight: inFlight })
  }

  async #start(who: number, of: number, key: number): Promise<void> {
    const body = { app_id: stage.app.id, distinct_id: this.#name(who) }
    const headers = { 'idempotency-key': `key-${key}` }
    const answer = await stage.call('POST', `/experiences/${this.#of(of).id}/start`, { body, headers })
    assert.ok([202, 410, 503].includes(answer.status), JSON.stringify(answer.body))
    if (answer.status !== 202) return
    assert.equal(answer.body.status === 'ineligible', answer.body.journey_id === null)
    if (answer.body.status !== 'started') return
    const place = `${who} ${of} ${key}`
    this.starts.set(place, [...(this.starts.get(place) ?? []), answer.body.journey_id])
  }

  async #device({ do: what, who, slot }: Extract<Act, { slot: number }>): Promise<void> {
    const journeyId = this.slots[slot] ?? ''
    const report = { journeyId, of: this.#of(0), section: 'tell', startedAt: Date.now() - 1000 }
    await (what === 'begin'
      ? this.#tolerant(stage.started(this.#name(who), report))
      : this.#tolerant(stage.completed(this.#name(who), { ...report, outcome: 'later' })))
  }

  async #report(who: number, generation: number, isDone: boolean): Promise<void> {
    const [journey] = await this.#journeys(who)
    const of = published.find(({ id }) => id === journey?.experience_id)
    if (!journey || !of) return
    const report = { journeyId: journey.id, of, section: 'again', generation }
    await this.#tolerant(
      isDone
        ? stage.completed(this.#name(who), { ...report, outcome: 'rest' })
        : stage.started(this.#name(who), report),
    )
  }

  /** Deleted customers are refused. */
  async #tolerant(sending: Promise<void>): Promise<void> {
    await sending.catch((error: Error) => assert.match(error.message, /customer_deleted/))
  }

  async #send(event: object): Promise<void> {
    const { status } = await stage.app.post('/event', { ...event })
    assert.ok([200, 410].includes(status))
  }

  #name(who: number): string {
    return this.people[who] ?? ''
  }

  #of(of: number): Published {
    const one = published[of]
    assert.ok(one)
    return one
  }

  async #customer(who: number): Promise<string | undefined> {
    const { status, body } = await stage.call('GET', `/customers/by_distinct_id/${this.#name(who)}${place}`)
    return status === 200 ? body.id : undefined
  }

  async #journeys(who: number) {
    const id = await this.#customer(who)
    const answer = id === undefined ? undefined : await stage.call('GET', `/customers/${id}/journeys`)
    return (answer?.status === 200 ? answer.body.data : []) as { id: string; experience_id: string }[]
  }

  async #call(method: string, path: string, body: object | undefined, allowed: number[]): Promise<void> {
    const { status, body: answer } = await stage.call(method, path, body === undefined ? {} : { body })
    assert.ok([...allowed, 503].includes(status), `${method} ${path}: ${status} ${JSON.stringify(answer)}`)
  }
}

test('whatever is published, reported, started, merged and deleted at once, and whichever worker dies, the invariants hold', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.array(act, { minLength: 3, maxLength: 10 }), { minLength: 2, maxLength: 4 }),
      async (rounds) => {
        const life = new Life()
        for (const round of rounds) await Promise.all(round.map((one) => life.act(one)))
        for (const of of published) await stage.call('POST', `/experiences/${of.id}/resume${place}`, { body: {} })
        await stage.quiet()
        for (const ids of life.starts.values()) assert.ok(ids.length <= 1, 'one key begins one journey')
        const scopeId = await stage.project.scopeId()
        const [scope] = await service.pool.query<{ scopeId: number; workspaceId: string; projectId: string }>(
          `select s.id as "scopeId", p.workspace_id as "workspaceId", p.id as "projectId"
         from scope s
         join project p on p.id = s.project_id
         where s.id = $1`,
          [scopeId],
        )
        assert.ok(scope)
        await checkAll(service.pool, { ...scope, environment: 'test' }, life.deleted)
      },
    ),
    { numRuns: 8, interruptAfterTimeLimit: 90_000, markInterruptAsFailure: false, endOnFailure: true },
  )
})
