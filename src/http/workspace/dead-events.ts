import Type, { type Static } from 'typebox'
import type { Pool } from '../../db/pool.ts'
import { type DeadEvent, listDeadEvents, replayDeadEvent } from '../../events/index.ts'
import { refuse } from '../../kernel/errors.ts'
import { closed, instant, nullable, nullableString, oneOf } from '../schema.ts'
import type { Endpoints } from './endpoint.ts'
import { listAnswer, listOf, listQuery, pageOf } from './list.ts'
import { byId, projectId } from './parts.ts'

const DeadEventObject = Type.Object(
  {
    object: Type.Literal('dead_event'),
    id: Type.String(),
    uuid: Type.String(),
    distinct_id: Type.String(),
    app_id: nullableString,
    payload: Type.Unknown({ description: 'The event as it was accepted; text where it cannot be read as JSON.' }),
    error: Type.Object({
      code: Type.Unsafe<string | null>({ ...nullableString, description: 'SQLSTATE, where the database refused it.' }),
      message: Type.String(),
    }),
    log_position: Type.String({ description: 'Its place in the log, for whoever reads the tables.' }),
    stream: oneOf('live', 'historical'),
    received_at: instant,
    created_at: instant,
    replayed_at: nullable(instant),
  },
  { title: 'DeadEvent' },
)

const tag = 'Events'

export function deadEvents(
  { get, post }: Endpoints,
  { pool, tombstoneKey }: { pool: Pool; tombstoneKey: Buffer },
): void {
  get(
    {
      path: '/dead_events',
      operationId: 'listDeadEvents',
      tag,
      summary: 'List events that could not be applied',
      description:
        'Newest first. They were accepted and are stored, but have had no effect: something in the service failed on them, three times alone. Kept for 30 days.',
      query: closed({ ...listQuery, project_id: projectId }),
      answers: { 200: listOf(DeadEventObject) },
      errors: [404],
    },
    async (look, { query }) => {
      const page = pageOf(query, /^[0-9]{1,18}$/)
      const found = await listDeadEvents(pool, look.scope(query.project_id), page)
      return listAnswer(found, page, { show, positionOf: ({ id }) => String(id) })
    },
  )

  post(
    {
      path: '/dead_events/:id/replay',
      operationId: 'replayDeadEvent',
      tag,
      summary: 'Apply a dead event after all',
      description:
        'Logs it again with its uuid, behind everything that was accepted by now; again it changes nothing. When its uuid was applied meanwhile it counts as a duplicate. When it fails again there is a new dead event. 410 when its customer was deleted.',
      params: byId,
      answers: { 200: DeadEventObject },
      errors: [404, 410],
    },
    async (change, { params }) => {
      const id = /^dead_([0-9]{1,18})$/.exec(params.id)?.[1]
      if (id === undefined) throw refuse('not_found')
      const { event, again } = await replayDeadEvent(change.tx, change.scopes(), { id: BigInt(id), tombstoneKey })
      const after = show(event)
      if (!again) await change.audit('replay', 'dead_event', after.id, { after })
      return { status: 200, body: after }
    },
  )
}

function show(event: DeadEvent): Static<typeof DeadEventObject> {
  return {
    object: 'dead_event',
    id: `dead_${event.id}`,
    uuid: event.uuid,
    distinct_id: event.distinctId,
    app_id: event.appId,
    payload: payloadOf(event.text),
    error: { code: event.errorCode, message: event.error },
    log_position: event.logPosition,
    stream: event.stream,
    received_at: event.receivedAt.toISOString(),
    created_at: event.diedAt.toISOString(),
    replayed_at: event.replayedAt?.toISOString() ?? null,
  }
}

function payloadOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
