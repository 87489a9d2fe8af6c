import assert from 'node:assert/strict'
import type { World } from '../end-to-end/world.ts'
import type { Device } from '../reference-client/device.ts'
import type { Transport } from '../reference-client/outbox.ts'

/** What a profile may offer: whether the one Experience that devices begin, and which journeys under which generations. */
interface Arms {
  fresh: boolean
  onward: string[]
}

interface Watched {
  device: Device
  /** Of the last answer. */
  status: number
  turn: Promise<unknown>
}

/**
 * Devices of customers, several each, that fetch and remember as clients do: each refuses a profile with a release that does
 * not verify, or with an older publication of what it may begin than it has seen. What they hold against each other beside
 * that: the generation of a journey never falls, and one generation is one leg.
 */
export class WatchedDevices {
  readonly #world: World
  readonly #names: readonly string[]
  readonly #begun: { id: string }
  readonly #devices: Watched[][]
  /** The highest generation of each journey that anybody was offered, and its leg. */
  readonly #offered = new Map<string, { generation: number; leg: string }>()

  /** A device of each customer on each line. `begun`: the one Experience that devices begin. */
  constructor(world: World, names: readonly string[], lines: readonly Transport[], begun: { id: string }) {
    this.#world = world
    this.#names = names
    this.#begun = begun
    this.#devices = names.map((name) => lines.map((line) => this.#watched(name, line)))
  }

  /** False: nobody is served, such as a deleted customer. A device asks for one thing after the other. */
  fetch(who: number, nth: number): Promise<boolean> {
    const one = this.#devices[who]?.[nth]
    assert.ok(one)
    const next = one.turn.then(() => this.#sync(one))
    one.turn = next
    return next
  }

  /** Everybody fetches, and is offered what stands open, no more and no less. To be asked while nothing is under way. */
  async checkAll(): Promise<void> {
    for (const [who, devices] of this.#devices.entries()) {
      const expected = await this.#expected(who)
      for (const [nth, { device }] of devices.entries()) {
        if (await this.fetch(who, nth)) assert.deepEqual(armsOf(device), expected, 'a profile offers what is open')
      }
    }
  }

  #watched(name: string, line: Transport): Watched {
    const transport: Transport = async (...sent) => {
      const answer = await line(...sent)
      watched.status = answer.status
      return answer
    }
    const watched: Watched = { device: this.#world.device(name, { transport }), status: 0, turn: Promise.resolve() }
    return watched
  }

  async #sync(watched: Watched): Promise<boolean> {
    const { device } = watched
    const before = new Map(this.#offered)
    const synced = await device.sync()
    if (watched.status === 410 || watched.status === 503) return false
    assert.notEqual(synced.kind, 'refused', `${watched.status} ${JSON.stringify(synced)}`)
    for (const { binding, reference } of device.profile()?.armedLegs ?? []) {
      if (binding.type !== 'continue' || synced.kind === 'unchanged') continue
      const [journeyId, generation] = [String(binding.journeyId), Number(binding.generation)]
      const leg = `${reference.versionId} ${reference.legId}`
      const known = before.get(journeyId)
      assert.ok(generation >= (known?.generation ?? 1), `4: generation ${generation} after ${known?.generation}`)
      if (generation === known?.generation) assert.equal(leg, known.leg, '4 and 7: one generation is one leg')
      if (generation >= (this.#offered.get(journeyId)?.generation ?? 1)) {
        this.#offered.set(journeyId, { generation, leg })
      }
    }
    return true
  }

  /** By what the Workspace API tells. */
  async #expected(who: number): Promise<Arms> {
    const { project, app } = this.#world
    const journeys = await this.#world.journeysOf(this.#names[who] ?? '')
    const { id, publications } = await project.get(`/experiences/${this.#begun.id}?project_id=${project.id}`)
    const isLive = publications.some((one: Record<string, unknown>) => one.app_id === app.id && one.status === 'live')
    const open = journeys.filter(({ status, held }) => status === 'armed' && !held)
    return {
      fresh: isLive && !journeys.some((one) => one.experience_id === id && one.end_reason !== 'refused'),
      onward: open.map((one) => `${one.id} ${one.generation}`).toSorted(),
    }
  }
}

function armsOf(device: Device): Arms {
  const bindings = device.profile()?.armedLegs.map(({ binding }) => binding) ?? []
  return {
    fresh: bindings.some(({ type }) => type === 'new'),
    onward: bindings
      .flatMap(({ type, journeyId, generation }) =>
        type === 'continue' ? [`${String(journeyId)} ${String(generation)}`] : [],
      )
      .toSorted(),
  }
}
