import Type, { type Static } from 'typebox'
import type { Pool } from '../../db/pool.ts'
import { type EventWarning, listWarnings } from '../../events/index.ts'
import { closed, instant, nullableString } from '../schema.ts'
import type { Endpoints } from './endpoint.ts'
import { dateOf } from './grants.ts'
import { listOf, wholeList } from './list.ts'
import { projectId } from './parts.ts'

const EventWarningObject = Type.Object(
  {
    object: Type.Literal('event_warning'),
    id: Type.String({ description: 'The code.' }),
    code: Type.String(),
    count: Type.Integer(),
    first_seen: instant,
    last_seen: instant,
    samples: Type.Array(
      Type.Object({
        uuid: Type.String(),
        event: Type.String(),
        distinct_id: Type.String(),
        detail: nullableString,
        seen_at: instant,
      }),
      { description: 'The newest first, at most 100.' },
    ),
  },
  { title: 'EventWarning' },
)

export function eventWarnings({ get }: Endpoints, pool: Pool): void {
  get(
    {
      path: '/event_warnings',
      operationId: 'listEventWarnings',
      tag: 'Events',
      summary: 'Count what was odd about accepted events',
      description:
        'One object for each code, all of them. Warnings never change an answer; each stored event carries its own too. They are counted by the hour in which their events were received: an hour counts when the range touches it. Kept for 90 days.',
      query: closed({
        project_id: projectId,
        code: Type.Optional(Type.String({ minLength: 1, maxLength: 64, 'x-storable': true })),
        start: Type.Optional(instant),
        end: Type.Optional(Type.String({ format: 'date-time', description: 'Exclusive.' })),
      }),
      answers: { 200: listOf(EventWarningObject) },
      errors: [404],
    },
    async (look, { query }) => {
      const { code, start, end } = query
      const range = { code: code ?? null, start: dateOf(start, 'start'), end: dateOf(end, 'end') }
      return wholeList((await listWarnings(pool, look.scope(query.project_id), range)).map(show))
    },
  )
}

function show({ code, count, firstSeen, lastSeen, samples }: EventWarning): Static<typeof EventWarningObject> {
  return {
    object: 'event_warning',
    ...{ id: code, code, count },
    first_seen: firstSeen.toISOString(),
    last_seen: lastSeen.toISOString(),
    samples: samples.map(({ uuid, event, distinctId, detail, seenAt }) => ({
      ...{ uuid, event, distinct_id: distinctId, detail },
      seen_at: seenAt.toISOString(),
    })),
  }
}
