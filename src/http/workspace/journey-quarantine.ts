import Type, { type Static } from 'typebox'
import { wireCustomerId } from '../../customers/index.ts'
import type { Pool } from '../../db/pool.ts'
import { dropQuarantined, listQuarantined, type QuarantineRecord, releaseQuarantined } from '../../journeys/index.ts'
import { refuse } from '../../kernel/errors.ts'
import type { Scope } from '../../tenancy/index.ts'
import { closed, instant, nullableString, oneOf } from '../schema.ts'
import { instantOf } from './amount.ts'
import { scopeIn } from './caller.ts'
import type { Endpoints } from './endpoint.ts'
import { listAnswer, listOf, listQuery, pageOf } from './list.ts'
import { byId, deleted, environment, projectId } from './parts.ts'

const object = 'quarantined_input'

const QuarantinedInputObject = Type.Object(
  {
    object: Type.Literal(object),
    id: Type.String(),
    environment,
    source: Type.Unsafe<'timer' | 'input' | 'webhook_result'>({
      ...oneOf('timer', 'input', 'webhook_result'),
      description: 'What was to be told: that its time has come, what happened to a customer, what a webhook answered.',
    }),
    customer_id: nullableString,
    journey_id: nullableString,
    body: Type.Record(Type.String(), Type.Unknown(), { description: 'As it stood.' }),
    error: Type.String({ description: 'Of the last try.' }),
    created_at: instant,
  },
  { title: 'QuarantinedInput' },
)

const tag = 'Journeys'

/** What makes way for the others after eight tries that failed. */
export function journeyQuarantine({ get, post, delete: remove }: Endpoints, pool: Pool): void {
  get(
    {
      path: '/journey_quarantine',
      operationId: 'listQuarantinedInputs',
      tag,
      summary: 'List what could not be told to journeys',
      description:
        'Timers, inputs and results of webhooks that failed eight times, newest first. They wait here until they are released or dropped.',
      query: closed({ ...listQuery, project_id: projectId }),
      answers: { 200: listOf(QuarantinedInputObject) },
      errors: [404],
      role: 'admin',
    },
    async (look, { query }) => {
      const page = pageOf(query, /^[0-9]{1,18}$/)
      const scope = look.scope(query.project_id)
      return listAnswer(await listQuarantined(pool, scope, page), page, {
        show: (one) => show(one, scope),
        positionOf: ({ id }) => String(id),
      })
    },
  )

  post(
    {
      path: '/journey_quarantine/:id/release',
      operationId: 'releaseQuarantinedInput',
      tag,
      summary: 'Tell a journey again',
      description:
        'An input is told after those that came behind it meanwhile; a timer whose journey has gone on changes nothing. What fails again comes back. 409 for the result of a webhook, which is not kept.',
      params: byId,
      answers: { 200: QuarantinedInputObject },
      errors: [404, 409],
      role: 'admin',
    },
    async (change, { params }) => {
      const scopes = change.scopes()
      const row = await releaseQuarantined(change.tx, scopes, idIn(params.id))
      const before = show(row, scopeIn(scopes, row))
      await change.audit('release', object, before.id, { before })
      return { status: 200, body: before }
    },
  )

  remove(
    {
      path: '/journey_quarantine/:id',
      operationId: 'deleteQuarantinedInput',
      tag,
      summary: 'Drop what could not be told to a journey',
      description: 'For ever: the journey goes on without it.',
      params: byId,
      answers: { 200: deleted(object) },
      errors: [404],
    },
    async (change, { params }) => {
      const scopes = change.scopes()
      const row = await dropQuarantined(change.tx, scopes, idIn(params.id))
      const before = show(row, scopeIn(scopes, row))
      await change.audit('delete', object, before.id, { before })
      return { status: 200, body: { object, id: before.id, deleted: true as const } }
    },
  )
}

function idIn(text: string): bigint {
  const digits = /^jq_([0-9]{1,18})$/.exec(text)?.[1]
  if (digits === undefined) throw refuse('not_found')
  return BigInt(digits)
}

const sources = { timer: 'timer', inbox: 'input', outbox: 'webhook_result' } as const

function show(row: QuarantineRecord, scope: Scope): Static<typeof QuarantinedInputObject> {
  return {
    object,
    id: `jq_${row.id}`,
    environment: scope.environment,
    source: sources[row.source],
    customer_id: row.customerId === null ? null : wireCustomerId(row.customerId),
    journey_id: row.journeyId,
    body: bodyOf(row),
    error: row.error,
    created_at: instantOf(row.at),
  }
}

/** An input's own body is text inside of it; what it failed on may be that it cannot be read. */
function bodyOf({ source, body }: QuarantineRecord): Record<string, unknown> {
  const whole = JSON.parse(body) as Record<string, unknown> // written by journeys
  if (source !== 'inbox') return whole
  try {
    return { ...whole, body: JSON.parse(String(whole.body)) }
  } catch {
    return whole
  }
}
