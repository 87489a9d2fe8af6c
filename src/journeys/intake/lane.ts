import { directivesOf, type MembershipConsumer } from '../../customers/index.ts'
import type { LaneEvent } from '../../events/index.ts'
import type { InboxBody, InboxRow } from './inbox.ts'
import { insertInbox } from './inbox-store.ts'
import { isReportName } from './report.ts'
import { createWatched } from './watched.ts'
import type { Interests } from './watched-names.ts'

type Transitions = Parameters<MembershipConsumer>[3]

/** Hands on what journeys listen to, in the lane's transaction. Where nothing was published it costs one probe. */
export function createJourneyConsumer(): MembershipConsumer {
  const watched = createWatched()
  return async (tx, scope, slice, transitions) => {
    const interests = await watched(tx, scope)
    if (interests === null) return
    const rows = rowsOf(interests, slice, transitions)
    if (rows.length > 0) await insertInbox(tx, scope, rows)
  }
}

/** Pure: in the order of the lane, a customer's changes of membership behind the event that they stand at. */
export function rowsOf(interests: Interests, slice: readonly LaneEvent[], transitions: Transitions): InboxRow[] {
  const rows: InboxRow[] = []
  for (const event of slice) {
    const body = bodyOf(interests, event)
    if (body) rows.push({ customerId: event.customerId, pos: event.pos, n: 0, receivedAt: event.receivedAt, body })
  }
  let n = 0
  for (const { segmentId, customerId, edge, cause, pos, at } of transitions) {
    // What a new definition or an import says is no edge: nothing happened to the customer.
    if (cause !== 'event' && cause !== 'timer' && cause !== 'merge') continue
    if (!interests.segments.has(segmentId)) continue
    n++
    rows.push({ customerId, pos, n, receivedAt: at, body: { kind: 'edge', segmentId, edge, at } })
  }
  return rows
}

function bodyOf({ events, properties }: Interests, event: LaneEvent): InboxBody | null {
  const { uuid, name, distinctId, appId, at, receivedAt, trust, live, recognised, originClaim, payload } = event
  // An import starts and ends nothing; its reports are counted as such.
  if (isReportName(name) || (live && recognised && events.has(name))) {
    const { properties: own, fact = false } = payload
    const origin = originClaim
    return { kind: 'event', uuid, name, distinctId, appId, at, receivedAt, trust, fact, live, origin, properties: own }
  }
  if (!live || properties.size === 0) return null
  const directives = directivesOf(payload, [])
  if (!directives) return null
  const { set, setOnce, increment, unset } = directives
  const touches = [...set.keys(), ...setOnce.keys(), ...increment.keys(), ...unset].some((key) => properties.has(key))
  return touches ? { kind: 'touched' } : null
}
