import type { Step } from './model.ts'
import { type Random, randomOf } from './random.ts'

/** One event of a request, and what is to become of it. */
export interface Item {
  /** As it is sent. */
  wire: unknown
  fate: Fate
}

/**
 * `taken`: acknowledged, stored once, with its effect. `contested`: its customer may have been deleted by then. `deleted`:
 * its customer is deleted for certain. `invalid`, `misdirected`: not taken, whatever else is in the request.
 */
export type Fate =
  | ({ kind: 'taken' } & Known & Effect)
  | ({ kind: 'contested' | 'deleted' } & Known)
  | { kind: 'invalid' | 'misdirected' }

interface Known {
  /** In lower case. */
  uuid: string
  distinctId: string
}

export type Effect =
  | { effect: 'count'; counter: Counter; amount: number }
  | { effect: 'step'; story: string; step: Step }
  | { effect: 'none' }

/** Properties that only grow: by live events, by imported ones. */
export type Counter = 'n' | 'h'

/** Customers that everybody counts on. */
export const counters = Array.from({ length: 40 }, (_, i) => `counter ${i}`)

/** The event of that name adds to one of the counters. The same name gives the same event, however often it is asked for. */
export function counted(seed: string, name: string, counter: Counter): Item {
  const random = randomOf(seed, 'event', name)
  const [uuid, distinctId, amount] = [random.uuid(), random.pick(counters), 1 + random.below(5)]
  const increment = { $increment: { [counter]: amount } }
  const wire = {
    event: 'counted',
    distinct_id: distinctId,
    uuid,
    ...(random.chance(0.5) ? increment : { properties: { ...increment, place: name } }),
    ...(counter === 'h' ? { timestamp: new Date(1.5e12 + random.below(1e9) * 100).toISOString() } : {}),
  }
  return { wire, fate: { kind: 'taken', uuid, distinctId, effect: 'count', counter, amount } }
}

/** An event of somebody who is deleted sooner or later. */
export function plain(seed: string, name: string, distinctId: string, kind: 'contested' | 'deleted'): Item {
  const uuid = randomOf(seed, 'event', name).uuid()
  return { wire: { event: 'seen', distinct_id: distinctId, uuid }, fate: { kind, uuid, distinctId } }
}

/** A step of a story, with its directives beside the properties or among them. */
export function told(seed: string, { story, name, step }: { story: string; name: string; step: Step }): Item {
  const random = randomOf(seed, 'event', name)
  const uuid = random.uuid()
  const { distinctId, joins, setOnce, set, increment, unset } = step
  const directives = {
    ...(setOnce && { $set_once: setOnce }),
    ...(set && { $set: set }),
    ...(increment && { $increment: increment }),
    ...(unset && { $unset: unset }),
  }
  const wire = {
    event: joins === undefined ? 'told' : '$identify',
    distinct_id: distinctId,
    uuid,
    ...(joins !== undefined && { $anon_distinct_id: joins }),
    ...(random.chance(0.5) ? directives : { properties: directives }),
  }
  return { wire, fate: { kind: 'taken', uuid, distinctId, effect: 'step', story, step } }
}

/** The same event again as another client writes it: uuids in any case, or as `idempotency_key`. */
export function again({ wire, fate }: Item, random: Random): Item {
  if (fate.kind === 'invalid' || fate.kind === 'misdirected') return { wire, fate }
  const { uuid, ...rest } = wire as { uuid: string } // every one that is not refused has one
  const written = random.chance(0.4) ? uuid.toUpperCase() : uuid
  return { wire: random.chance(0.2) ? { ...rest, idempotency_key: written } : { ...rest, uuid: written }, fate }
}

/** What no batch may keep, for one reason or another. */
export function refused(random: Random): Item {
  const event = { event: 'counted', distinct_id: random.pick(counters), uuid: random.uuid() }
  const bad: Item[] = [
    { wire: { ...event, distinct_id: '  ' }, fate: { kind: 'invalid' } },
    { wire: { ...event, uuid: 'none' }, fate: { kind: 'invalid' } },
    { wire: { ...event, timestamp: '2023-02-30' }, fate: { kind: 'invalid' } },
    { wire: { ...event, event: 7 }, fate: { kind: 'invalid' } },
    { wire: null, fate: { kind: 'invalid' } },
    { wire: { ...event, event: '$create_alias' }, fate: { kind: 'misdirected' } },
  ]
  return random.pick(bad)
}
