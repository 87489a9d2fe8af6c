import type pg from 'pg'
import { asTx, type Tx } from '../../db/pool.ts'
import { type Happening, SliceTooLarge } from '../../events/index.ts'
import { Refusal } from '../../kernel/errors.ts'
import type { Scope } from '../../tenancy/index.ts'
import { decide } from '../apply.ts'
import { anonymousIdOf } from '../identify.ts'
import { namesOnePerson } from '../identity.ts'
import { loadSlice } from '../load.ts'
import { writeDecision, writeJournal } from '../projection.ts'
import { replayCommand } from './replay-command.ts'
import { seedIds } from './seed.ts'
import { insertIncomplete, type Live, movePosition, selectIncomplete } from './shadow-store.ts'

/** Where a rebuild works: the session of the shadow, and the live tables beside it. */
export interface Shadow {
  client: pg.ClientBase & Tx['client']
  scope: Scope
  live: Live
  tombstoneKey: Buffer
  /** A command that the shadow refused, though it was carried out. */
  onRefused: (pos: bigint, reason: string) => void
}

type EventHappening = Extract<Happening, { kind: 'event' }>

/** Does to the shadow what happened to the customers, in one transaction of the caller's. */
export async function replay(shadow: Shadow, happened: readonly Happening[]): Promise<void> {
  const tx = asTx(shadow.client)
  let events: EventHappening[] = []
  for (const each of happened) {
    if (each.kind === 'event') {
      events.push(each)
      continue
    }
    await replayEvents(tx, shadow, events)
    events = []
    await movePosition(tx, shadow.scope, each.pos - 1n)
    await replayCommand(tx, shadow, each).catch((error: unknown) => {
      if (!(error instanceof Refusal)) throw error
      shadow.onRefused(each.pos, error.message)
    })
  }
  await replayEvents(tx, shadow, events)
  const last = happened.at(-1)
  if (last) await movePosition(tx, shadow.scope, last.pos)
}

/** Leaves out the events of those whose history is not all there, and whoever an event would join to one of them. */
async function replayEvents(tx: Tx, shadow: Shadow, events: EventHappening[]): Promise<void> {
  const incomplete = await selectIncomplete(tx, [...new Set(events.flatMap(idsOf))])
  let whole: EventHappening[] = []
  for (const each of events) {
    const ids = idsOf(each)
    const known = ids.every((id) => !incomplete.has(id)) && !lacksSource(each)
    if (known) {
      whole.push(each)
      continue
    }
    if (ids.every((id) => incomplete.has(id))) continue
    // What came before counts, and says who else is meant.
    await replayWhole(tx, shadow, whole)
    whole = []
    await insertIncomplete(tx, shadow.scope, ids)
    for (const id of await selectIncomplete(tx, [...new Set(events.flatMap(idsOf))])) incomplete.add(id)
  }
  await replayWhole(tx, shadow, whole)
}

function idsOf({ event }: EventHappening): string[] {
  const source = event.payload.event === '$identify' ? anonymousIdOf(event) : undefined
  return source !== undefined && namesOnePerson(source) ? [event.distinctId, source] : [event.distinctId]
}

/** The id that it named was erased with its customer. What is refused whatever else is known does the same without it. */
function lacksSource({ event, merge }: EventHappening): boolean {
  const isKnown = merge === null || merge.reason === 'illegal_id' || merge.reason === 'source_deleted'
  return !isKnown && anonymousIdOf(event) === undefined
}

async function replayWhole(tx: Tx, shadow: Shadow, whole: EventHappening[]): Promise<void> {
  const { scope, tombstoneKey } = shadow
  for (let rest = whole; rest.length > 0; ) {
    await seedIds(tx, shadow, firstMentions(rest))
    const slice = await loadable(tx, shadow, rest)
    const events = slice.map(({ event }) => event)
    const positions = slice.map(({ pos }) => pos)
    const decision = decide(await loadSlice(tx.client, scope, events, { tombstoneKey }), events)
    await writeDecision(tx, scope, decision, positions)
    await writeJournal(tx, scope, decision, positions, [])
    rest = rest.slice(slice.length)
  }
}

/** As many as fit in memory together. */
async function loadable(tx: Tx, { scope, tombstoneKey }: Shadow, rest: EventHappening[]): Promise<EventHappening[]> {
  try {
    const events = rest.map(({ event }) => event)
    await loadSlice(tx.client, scope, events, { tombstoneKey })
    return rest
  } catch (error) {
    if (error instanceof SliceTooLarge) return rest.slice(0, error.fits)
    throw error
  }
}

/** When each id would be seen first if these events were the first to name it. A refused source is not created. */
function firstMentions(events: EventHappening[]): Map<string, number> {
  const first = new Map<string, number>()
  for (const each of events) {
    const [target, source] = idsOf(each)
    const named = [target, each.merge?.status === 'refused' ? undefined : source]
    for (const id of named) if (id !== undefined && !first.has(id)) first.set(id, each.event.at)
  }
  return first
}
