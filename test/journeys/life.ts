import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { anEvent } from '../app/project.ts'
import type { World } from '../end-to-end/world.ts'
import type { Act } from './acts.ts'
import { newJourneyId, type Published } from './stage.ts'
import { WatchedDevices } from './watched-devices.ts'

/** What acts upon: three Experiences, of which devices begin the first, and what is none of theirs. */
export interface Ground {
  world: World
  /** Every version of each, the newest last. */
  versions: Published[][]
  /** Another draft of an Experience. */
  draftOf: (of: number) => object
  crash: () => Promise<void>
}

type OfPerson = { do: 'paid' | 'again' | 'tick'; who: number } | { do: 'log in'; who: number; source: number }
type OfRecord = { do: 'split' | 'delete'; who: number } | { do: 'merge'; who: number; source: number }

/** One life of four customers. */
export class Life {
  readonly #ground: Ground
  readonly #world: World
  readonly #names = [0, 1, 2, 3].map(() => randomUUID())
  readonly #slots = [0, 1].map(() => newJourneyId())
  readonly #sent = new Map<number, object>()
  readonly devices: WatchedDevices
  /** Customers that are gone for good. */
  readonly deleted = new Set<string>()
  /** Journeys that each key began for whoever had it, of one owner. */
  readonly starts = new Map<string, Set<string>>()
  /** Begun and ended: a key may begin anew for whoever came out. Odd while one is under way. */
  #splits = 0
  #publishing: Promise<unknown> = Promise.resolve()

  constructor(ground: Ground, lines: ConstructorParameters<typeof WatchedDevices>[2]) {
    this.#ground = ground
    this.#world = ground.world
    this.devices = new WatchedDevices(ground.world, this.#names, lines, this.#newest(0))
  }

  async act(act: Act): Promise<unknown> {
    switch (act.do) {
      case 'publish':
        this.#publishing = this.#publishing.then(() => this.#publish(act.of, act.inFlight))
        return this.#publishing
      case 'rollback': {
        const { versionId } = this.#version(act.of, act.to)
        return this.#change(act.of, `versions/${versionId}/activate`, { in_flight: act.inFlight })
      }
      case 'pause':
        return this.#change(act.of, 'pause', { in_flight: 'hold' })
      case 'resume':
        return this.#change(act.of, 'resume', {})
      case 'unpublish':
        return this.#change(act.of, 'unpublish', { in_flight: act.inFlight })
      case 'rotate':
        return this.#rotate()
      case 'crash':
        return this.#ground.crash()
      case 'start':
        return this.#start(act.who, act.of, act.key)
      case 'begin':
      case 'complete':
        return this.#device(act)
      case 'report':
        return this.#report(act.who, act.generation, act.isDone)
      case 'fetch':
        return this.devices.fetch(act.who, act.device)
      case 'paid':
      case 'again':
      case 'tick':
      case 'log in':
        return this.#person(act)
      case 'merge':
      case 'split':
      case 'delete':
        return this.#record(act)
    }
  }

  async #person(act: OfPerson): Promise<void> {
    const { who } = act
    switch (act.do) {
      case 'paid': {
        const event = anEvent(this.#name(who), { event: 'paid', uuid: randomUUID() })
        this.#sent.set(who, event)
        return this.#send(event)
      }
      case 'again': {
        const event = this.#sent.get(who)
        return event && this.#send(event)
      }
      case 'tick':
        return this.#tick(who)
      case 'log in': {
        const source = { $anon_distinct_id: this.#name(act.source) }
        return this.#send(anEvent(this.#name(who), { event: '$identify', uuid: randomUUID(), ...source }))
      }
    }
  }

  async #record(act: OfRecord): Promise<void> {
    const id = await this.#customer(act.who)
    if (id === undefined) return
    if (act.do === 'split') return this.#split(id)
    if (act.do === 'merge') {
      const body = { source_distinct_id: this.#name(act.source), force: true }
      await this.#call('POST', `/customers/${id}/merge`, body, [400, 404, 409, 410])
      return
    }
    const status = await this.#call('DELETE', `/customers/${id}`, undefined, [404, 409, 410])
    if (status === 200) this.deleted.add(id)
  }

  /** What is paused goes on. */
  async resumeAll(): Promise<void> {
    for (const of of this.#ground.versions.keys()) await this.#change(of, 'resume', {})
  }

  async #publish(of: number, inFlight: string): Promise<void> {
    const next = await this.#newest(of).publish(this.#ground.draftOf(of), { in_flight: inFlight })
    this.#ground.versions[of]?.push(next)
  }

  /** Devices know a key before it signs. */
  async #rotate(): Promise<void> {
    const { project, keys } = this.#world
    const made = await project.post('/signing_keys', { project_id: project.id })
    keys.set(made.key_id, Buffer.from(made.public_key, 'base64'))
    await project.post(`/signing_keys/${made.id}/activate`, {})
  }

  async #start(who: number, of: number, key: number): Promise<void> {
    const splits = this.#splits
    const body = { app_id: this.#world.app.id, distinct_id: this.#name(who) }
    const headers = { 'idempotency-key': `key-${key}` }
    const answer = await this.#world.call('POST', `/experiences/${this.#newest(of).id}/start`, { body, headers })
    assert.ok([202, 404, 410, 503].includes(answer.status), JSON.stringify(answer.body))
    if (answer.status !== 202) return
    assert.equal(answer.body.status === 'ineligible', answer.body.journey_id === null)
    if (answer.body.status !== 'started' || splits % 2 === 1 || splits !== this.#splits) return
    const place = `${who} ${of} ${key} ${splits}`
    this.starts.set(place, (this.starts.get(place) ?? new Set()).add(answer.body.journey_id))
  }

  async #device({ do: what, who, slot, version }: Extract<Act, { slot: number }>): Promise<void> {
    const journeyId = this.#slots[slot] ?? ''
    const report = { journeyId, of: this.#version(0, version), section: 'tell', startedAt: Date.now() - 1000 }
    await (what === 'begin'
      ? this.#tolerant(this.#world.started(this.#name(who), report))
      : this.#tolerant(this.#world.completed(this.#name(who), { ...report, outcome: 'later' })))
  }

  /** Of the version that it runs, as the device was offered it, under the generation it has or another. */
  async #report(who: number, generation: number, isDone: boolean): Promise<void> {
    const [journey] = await this.#journeys(who)
    const of = this.#ground.versions.flat().find(({ versionId }) => versionId === journey?.version_id)
    if (!journey || !of) return
    const report = { journeyId: journey.id, of, section: 'again', generation }
    await this.#tolerant(
      isDone
        ? this.#world.completed(this.#name(who), { ...report, outcome: 'rest' })
        : this.#world.started(this.#name(who), report),
    )
  }

  async #tick(who: number): Promise<void> {
    for (const { id } of (await this.#journeys(who)).slice(0, 2)) {
      await this.#call('POST', `/journeys/${id}/advance`, undefined, [404, 409])
    }
  }

  /** Takes the newest merge of the customer back. */
  async #split(id: string): Promise<void> {
    const { status, body } = await this.#world.call('GET', `/customers/${id}/merges`)
    const merge = status === 200 && body.data.find((one: { status: string }) => one.status === 'merged')
    if (!merge) return
    this.#splits += 1
    await this.#call('POST', `/customers/${id}/merges/${merge.id}/split`, undefined, [404, 409, 410])
    this.#splits += 1
  }

  /** Deleted customers are refused. */
  async #tolerant(sending: Promise<void>): Promise<void> {
    await sending.catch((error: Error) => assert.match(error.message, /customer_deleted/))
  }

  async #send(event: object): Promise<void> {
    const { status } = await this.#world.app.post('/event', { ...event })
    assert.ok([200, 410].includes(status))
  }

  #name(who: number): string {
    return this.#names[who] ?? ''
  }

  #newest(of: number): Published {
    const one = this.#ground.versions[of]?.at(-1)
    assert.ok(one)
    return one
  }

  #version(of: number, nth: number): Published {
    const versions = this.#ground.versions[of] ?? []
    return versions[nth % versions.length] ?? this.#newest(of)
  }

  async #customer(who: number): Promise<string | undefined> {
    const { call, project } = this.#world
    const path = `/customers/by_distinct_id/${this.#name(who)}?project_id=${project.id}`
    const { status, body } = await call('GET', path)
    return status === 200 ? body.id : undefined
  }

  async #journeys(who: number) {
    const id = await this.#customer(who)
    const answer = id === undefined ? undefined : await this.#world.call('GET', `/customers/${id}/journeys`)
    return (answer?.status === 200 ? answer.body.data : []) as { id: string; version_id: string }[]
  }

  async #change(of: number, verb: string, body: object): Promise<void> {
    const path = `/experiences/${this.#newest(of).id}/${verb}?project_id=${this.#world.project.id}`
    await this.#call('POST', path, body, [409])
  }

  /** 503 happens: what is locked by somebody else for too long is told so. */
  async #call(method: string, path: string, body: object | undefined, refusals: number[]): Promise<number> {
    const { status, body: answer } = await this.#world.call(method, path, body === undefined ? {} : { body })
    const isFine = status < 300 || [...refusals, 503].includes(status)
    assert.ok(isFine, `${method} ${path}: ${status} ${JSON.stringify(answer)}`)
    return status
  }
}
