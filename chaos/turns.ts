import { must } from '../src/kernel/assert.ts'
import { again, counted, type Item, plain, refused, told } from './items.ts'
import type { Step } from './model.ts'
import { type Random, randomOf } from './random.ts'
import { storyOf } from './story.ts'

/** One request, which its client repeats until it has a final answer. */
export type Turn =
  /** `once`: not repeated; whether it was stored may stay unknown. */
  | { kind: 'event'; item: Item; once: boolean }
  | { kind: 'batch'; items: Item[]; historical: boolean }
  | { kind: 'spend'; spend: Spend; conflicts: boolean }
  | { kind: 'grant'; customer: string; allowance: number; idempotencyKey: string }
  | { kind: 'delete'; distinctId: string }
  | { kind: 'look'; distinctId: string }

export interface Spend {
  operationId: string
  customer: string
  quantity: number
  mode: 'consume' | 'set_usage'
}

export interface ClientOptions {
  seed: string
  client: number
  /** Sends only large batches, for when the queue is to be filled. */
  flood: boolean
  /** Whether customers can be deleted. */
  deletes: boolean
}

/** Whose units everybody spends, and customers that only one client each counts up to a total. */
export const spenders = Array.from({ length: 6 }, (_, i) => `spender ${i}`)
export const meterOf = (client: number) => `meter ${client}`

/** Fewer than a long run counts up to. */
const meterUnits = 400
const batchItemsMax = 60
const floodItems = 1000

/** All turns of one client, for ever. The same options give the same turns. */
export function* turnsOf(options: ClientOptions): Generator<Turn> {
  const { seed, client, flood } = options
  const random = randomOf(seed, 'client', client)
  const story = stories(options, random)
  const event = events(options, random)
  const spend = spends(options, random)
  const purse = purses(options, random)
  const departure = departures(options, random)
  // These wait until a customer is there; the others go on while the lane is behind.
  const waiting = client % 2 === 1 ? [departure, departure, purse, purse, grants(options, random)] : []
  const kinds = [
    ...[event, event, batches(options, random), twins(options, random), imports(options, random), looks(random)],
    ...[story, story, story, spend, spend, twinSpends(options), meters(options, random), ...waiting],
  ]
  for (let n = 0; ; n++) {
    if (flood) yield { kind: 'batch', items: fresh(options, `flood ${n}`, floodItems), historical: false }
    else yield must(random.pick(kinds).next().value, 'none of them ends')
  }
}

function fresh({ seed, client }: ClientOptions, name: string, count: number): Item[] {
  return Array.from({ length: count }, (_, i) => counted(seed, `${client} ${name} ${i}`, 'n'))
}

/** Clients 0 and 1 are a pair, 2 and 3, and so on: they send the same things at about the same time. */
const pairOf = (client: number) => Math.floor(client / 2)

function* events({ seed, client }: ClientOptions, random: Random): Generator<Turn> {
  for (let n = 0; ; n++) {
    const nth = n > 0 && random.chance(0.3) ? random.below(n) : n
    const once = nth === n && random.chance(0.1)
    // What was sent once only is not told again: whether it was stored stays open.
    const item = counted(seed, `${client} single ${nth} ${once ? 'once' : ''}`, 'n')
    yield { kind: 'event', item: again(item, random), once }
  }
}

/** New events, events of this very batch and of older ones again, and some that are no events. */
function* batches(options: ClientOptions, random: Random): Generator<Turn> {
  const { seed, client, deletes } = options
  const sizes: number[] = []
  for (let n = 0; ; n++) {
    const size = 1 + random.below(batchItemsMax)
    sizes.push(size)
    const news = fresh(options, `batch ${n}`, size)
    const items = news.flatMap((item, i): Item[] => {
      const extra: Item[] = []
      if (random.chance(0.1)) extra.push(again(news[random.below(i + 1)] ?? item, random))
      if (random.chance(0.1)) {
        const older = random.below(n + 1)
        const name = `${client} batch ${older} ${random.below(sizes[older] ?? 1)}`
        extra.push(again(counted(seed, name, 'n'), random))
      }
      if (random.chance(0.08)) extra.push(refused(random))
      if (deletes && random.chance(0.02)) {
        const gone = leaver(client ^ 1, random.below(1 + Math.floor(n / 4)))
        extra.push(plain(seed, `${client} about ${gone} ${n} ${i}`, gone, 'contested'))
      }
      return [item, ...extra]
    })
    yield { kind: 'batch', items: random.shuffled(items), historical: false }
  }
}

function* twins({ seed, client }: ClientOptions, random: Random): Generator<Turn> {
  for (let n = 0; ; n++) {
    const items = Array.from({ length: 20 }, (_, i) => counted(seed, `pair ${pairOf(client)} twin ${n} ${i}`, 'n'))
    yield { kind: 'batch', items: random.shuffled(items).map((item) => again(item, random)), historical: false }
  }
}

function* imports({ seed, client }: ClientOptions, random: Random): Generator<Turn> {
  for (let n = 0; ; n++) {
    const nth = n > 0 && random.chance(0.2) ? random.below(n) : n
    const items = Array.from({ length: 40 }, (_, i) => counted(seed, `${client} import ${nth} ${i}`, 'h'))
    yield { kind: 'batch', items: random.shuffled(items), historical: true }
  }
}

function* stories({ seed, client }: ClientOptions, random: Random): Generator<Turn> {
  for (let n = 0; ; n++) {
    for (const { items, historical } of storyOf(seed, `story ${client} ${n}`, random)) {
      const [item] = items
      if (item && items.length === 1 && !historical && random.chance(0.7)) yield { kind: 'event', item, once: false }
      else yield { kind: 'batch', items, historical }
    }
  }
}

/** New operations, earlier ones again, and earlier ids for something else. */
function* spends({ client }: ClientOptions, random: Random): Generator<Turn> {
  const done: Spend[] = []
  for (let n = 0; ; n++) {
    if (done.length > 0 && random.chance(0.2)) {
      yield { kind: 'spend', spend: random.pick(done), conflicts: false }
    } else if (done.length > 0 && random.chance(0.05)) {
      const spend = random.pick(done)
      yield { kind: 'spend', spend: { ...spend, quantity: spend.quantity + 1 }, conflicts: true }
    } else {
      const [customer, quantity] = [random.pick(spenders), 1 + random.below(3)]
      const spend: Spend = { operationId: `spend ${client} ${n}`, customer, quantity, mode: 'consume' }
      done.push(spend)
      yield { kind: 'spend', spend, conflicts: false }
    }
  }
}

function* twinSpends({ seed, client }: ClientOptions): Generator<Turn> {
  for (let n = 0; ; n++) {
    const operationId = `pair ${pairOf(client)} spend ${n}`
    const shared = randomOf(seed, operationId)
    const spend: Spend = {
      operationId,
      customer: shared.pick(spenders),
      quantity: 1 + shared.below(3),
      mode: 'consume',
    }
    yield { kind: 'spend', spend, conflicts: false }
  }
}

function* meters({ client }: ClientOptions, random: Random): Generator<Turn> {
  const customer = meterOf(client)
  yield { kind: 'grant', customer, allowance: meterUnits, idempotencyKey: `grant ${customer}` }
  let total = 0
  for (let n = 0; ; n++) {
    total += random.below(4)
    const quantity = Math.max(1, random.chance(0.2) ? total - random.below(10) : total)
    const spend: Spend = { operationId: `meter ${client} ${n}`, customer, quantity, mode: 'set_usage' }
    yield { kind: 'spend', spend, conflicts: false }
  }
}

/** Two customers with units of their own become one while these are being spent. */
function* purses({ seed, client }: ClientOptions, random: Random): Generator<Turn> {
  for (let n = 0; ; n++) {
    const story = `purse ${client} ${n}`
    const [owner, phone] = [`owner of ${story}`, `phone of ${story}`]
    const tell = (name: string, step: Step): Turn => {
      return { kind: 'event', item: told(seed, { story, name: `${story} ${name}`, step }), once: false }
    }
    let spent = 0
    const spend = (): Turn => {
      const operationId = `${story} ${spent++}`
      const [customer, quantity] = [random.pick([owner, phone]), 1 + random.below(4)]
      return { kind: 'spend', spend: { operationId, customer, quantity, mode: 'consume' }, conflicts: false }
    }
    for (const distinctId of [owner, phone]) {
      yield tell(distinctId, { distinctId })
      yield { kind: 'grant', customer: distinctId, allowance: 5, idempotencyKey: `grant ${distinctId}` }
    }
    yield spend()
    yield tell('joins', { distinctId: owner, joins: phone })
    for (let i = 0; i < 4; i++) yield spend()
  }
}

/** Fewer units than are asked for, so that many are denied. */
function* grants({ client }: ClientOptions, random: Random): Generator<Turn> {
  for (let n = 0; ; n++) {
    const [customer, allowance] = [random.pick(spenders), 1 + random.below(8)]
    yield { kind: 'grant', customer, allowance, idempotencyKey: `grant ${client} ${n}` }
  }
}

function* looks(random: Random): Generator<Turn> {
  for (;;) yield { kind: 'look', distinctId: random.pick(spenders) }
}

const leaver = (client: number, n: number) => `leaver ${client} ${n}`

/** Somebody comes, is deleted, and is sent for again in vain. */
function* departures({ seed, client, deletes }: ClientOptions, random: Random): Generator<Turn> {
  for (let n = 0; ; n++) {
    const distinctId = leaver(client, n)
    const event = (name: string, kind: 'contested' | 'deleted') =>
      plain(seed, `${distinctId} ${name}`, distinctId, kind)
    yield { kind: 'batch', items: [event('first', 'contested'), event('second', 'contested')], historical: false }
    if (!deletes) continue
    yield { kind: 'event', item: event('third', 'contested'), once: false }
    yield { kind: 'delete', distinctId }
    yield { kind: 'event', item: event('fourth', 'deleted'), once: false }
    yield {
      kind: 'batch',
      items: [event('first', 'deleted'), counted(seed, `${client} beside leaver ${n}`, 'n'), event('fifth', 'deleted')],
      historical: random.chance(0.2),
    }
  }
}
