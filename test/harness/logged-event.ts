import type { EventPayload, LoggedEvent } from '../../src/events/index.ts'

let count = 0

/** An event as the lane reads it from the log: live, at a fixed second unless told otherwise. */
export function loggedEvent(
  distinctId: string,
  payload: Partial<EventPayload> = {},
  overrides: Partial<LoggedEvent> = {},
): LoggedEvent {
  const at = overrides.at ?? Date.UTC(2026, 0, 1)
  const uuid = `00000000-0000-4000-8000-${(++count).toString(16).padStart(12, '0')}`
  return {
    uuid,
    distinctId,
    appId: null,
    at,
    receivedAt: at,
    live: true,
    recognised: true,
    payload: {
      event: 'opened',
      distinct_id: distinctId,
      uuid,
      timestamp: new Date(at).toISOString(),
      properties: {},
      trust: 'device',
      ...payload,
    },
    ...overrides,
  }
}

/** `$identify` of `distinctId` that wants `anonymousId` joined to it. */
export function identifyEvent(
  distinctId: string,
  anonymousId: string,
  payload: Partial<EventPayload> = {},
  overrides: Partial<LoggedEvent> = {},
): LoggedEvent {
  return loggedEvent(distinctId, { event: '$identify', $anon_distinct_id: anonymousId, ...payload }, overrides)
}
