import { bodyHash } from './body-hash.ts'
import { isRecognised } from './catalogue.ts'
import type { LogRow } from './lane-store.ts'
import type { EventPayload, LoggedEvent, Stream } from './types.ts'

/** An event that was not applied before, with the hash its uuid will be known by. */
export interface Fresh {
  event: LoggedEvent
  bodyHash: bigint
}

export interface Deduped {
  fresh: Fresh[]
  duplicates: number
  /** Came again with another body: the first body counts. */
  differing: LoggedEvent[]
}

/** Body hashes by uuid. */
export type SeenBefore = ReadonlyMap<string, bigint>

/** Leaves out what was applied before, and all but the first of equal uuids in the slice. `seen`: applied since the rows were read. */
export function freshOf(rows: readonly LogRow[], stream: Stream, seen: SeenBefore = nothing): Deduped {
  const first = new Map<string, bigint>()
  const deduped: Deduped = { fresh: [], duplicates: 0, differing: [] }
  for (const row of rows) {
    // Written by normalise() in the version of that time; types of new fields are optional.
    const payload = JSON.parse(row.text) as EventPayload
    const hash = bodyHash(row.text, payload, row.receivedAt)
    const known = row.seen?.bodyHash ?? seen.get(row.uuid) ?? first.get(row.uuid)
    if (known === undefined) {
      first.set(row.uuid, hash)
      deduped.fresh.push({ event: loggedEventOf(row, payload, stream), bodyHash: hash })
      continue
    }
    deduped.duplicates++
    if (known !== hash) deduped.differing.push(loggedEventOf(row, payload, stream))
  }
  return deduped
}

const nothing: SeenBefore = new Map()

export function loggedEventOf(
  { uuid, distinctId, appId, receivedAt }: LogRow,
  payload: EventPayload,
  stream: Stream,
): LoggedEvent {
  return {
    ...{ uuid, distinctId, appId, receivedAt, payload },
    at: Date.parse(payload.timestamp),
    live: stream === 'live',
    recognised: isRecognised(payload.event, { fact: payload.fact === true }),
  }
}
