import Type, { type Static } from 'typebox'
import type { Pool } from '../../db/pool.ts'
import { createExport, type EventExport, getExport, getExportFile } from '../../events/index.ts'
import { must } from '../../kernel/assert.ts'
import { refuse } from '../../kernel/errors.ts'
import { exportKeptMs } from '../../kernel/limits.ts'
import type { Scope } from '../../tenancy/index.ts'
import { closed, instant, nullable, nullableString, oneOf } from '../schema.ts'
import { instantOf, nullableInstantOf } from './amount.ts'
import { scopeIn } from './caller.ts'
import type { Endpoints } from './endpoint.ts'
import { eventName } from './events.ts'
import { timeOf } from './grants.ts'
import { byId, environment, id, projectId } from './parts.ts'

const ExportObject = Type.Object(
  {
    object: Type.Literal('event_export'),
    id: Type.String(),
    project_id: Type.String(),
    environment,
    status: oneOf('pending', 'running', 'completed', 'failed'),
    format: Type.Literal('jsonl.gz'),
    time_range: nullable(Type.Object({ start: instant, end: instant })),
    events: nullable(Type.Array(Type.String())),
    from_position: Type.Integer({ description: 'Exclusive.' }),
    to_position: Type.Integer({ description: 'Inclusive: the `from_position` of the next export.' }),
    files: Type.Array(
      Type.Object({
        url: Type.String({ description: 'Path of the file, to be fetched with the same key.' }),
        size_bytes: Type.Integer(),
        sha256: Type.String(),
        rows: Type.Integer(),
      }),
      { description: 'All of them, once it is completed; read in order they are in the order of positions.' },
    ),
    error: nullableString,
    created_at: instant,
    completed_at: nullable(instant),
    expires_at: instant,
  },
  { title: 'EventExport' },
)

const tag = 'Events'
const exportEventsMax = 100

export function eventExports({ get, post, file }: Endpoints, pool: Pool): void {
  post(
    {
      path: '/event_exports',
      operationId: 'createEventExport',
      tag,
      summary: 'Export events',
      description:
        'Every event that is applied by now, once, with the customer it belongs to: of a time range, or behind a position. Written in the background as JSON lines, each what `GET /events` shows; ask for the export until it is completed. Kept for 7 days.',
      body: closed({
        project_id: projectId,
        format: oneOf('jsonl.gz', 'parquet'),
        time_range: Type.Optional(closed({ start: instant, end: instant })),
        from_position: Type.Optional(Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })),
        events: Type.Optional(Type.Array(eventName, { minItems: 1, maxItems: exportEventsMax })),
      }),
      answers: { 202: ExportObject },
      errors: [404, 409, 429],
    },
    async (change, { body }) => {
      const scope = change.scope(body.project_id)
      if (body.format === 'parquet') {
        throw refuse('invalid_request', {
          param: 'format',
          message: 'format parquet needs a driver that is not here: take jsonl.gz',
        })
      }
      const { time_range: range, from_position: fromPosition, events = null } = body
      if ((range === undefined) === (fromPosition === undefined)) {
        throw refuse('invalid_request', { param: 'time_range', message: 'give either time_range or from_position' })
      }
      const start = timeOf(range?.start, 'time_range.start')
      const end = timeOf(range?.end, 'time_range.end')
      if (start !== null && end !== null && end <= start) {
        throw refuse('invalid_request', { param: 'time_range.end', message: 'time_range.end must be after start' })
      }
      const made = await createExport(change.tx, scope, { start, end, events, fromPosition: BigInt(fromPosition ?? 0) })
      const after = show(must(await getExport(change.tx, [scope], made), 'it was just made'), scope)
      await change.audit('create', 'event_export', after.id, { after })
      return { status: 202, body: after }
    },
  )

  get(
    {
      path: '/event_exports/:id',
      operationId: 'getEventExport',
      tag,
      summary: 'Get an export of events',
      params: byId,
      answers: { 200: ExportObject },
      errors: [404],
    },
    async (look, { params }) => {
      const scopes = look.scopes()
      const found = await getExport(pool, scopes, params.id)
      if (!found) throw refuse('not_found')
      return show(found, scopeIn(scopes, found))
    },
  )

  file(
    {
      path: '/event_exports/:id/files/:n',
      operationId: 'getEventExportFile',
      tag,
      summary: 'Download a file of an export',
      description: 'One gzip member of JSON lines.',
      params: closed({ id, n: Type.String({ pattern: '^[1-9][0-9]{0,8}$' }) }),
      answers: {
        200: Type.Unsafe({
          description: 'The file.',
          content: { 'application/gzip': { schema: Type.String({ format: 'binary' }) } },
        }),
      },
      errors: [404],
    },
    async (look, { params }) => {
      const n = Number(params.n)
      const bytes = await getExportFile(pool, look.scopes(), { id: params.id, n })
      if (!bytes) throw refuse('not_found')
      return { type: 'application/gzip', name: `${params.id}-${n}.jsonl.gz`, bytes }
    },
  )
}

function show(made: EventExport, { projectId: project, environment: of }: Scope): Static<typeof ExportObject> {
  return {
    object: 'event_export',
    id: made.id,
    project_id: project,
    environment: of,
    status: made.status,
    format: 'jsonl.gz',
    time_range:
      made.start === null || made.end === null ? null : { start: instantOf(made.start), end: instantOf(made.end) },
    events: made.events,
    from_position: Number(made.fromPosition),
    to_position: Number(made.toPosition),
    files: made.files.map(({ n, rows, bytes, sha256 }) => ({
      ...{ url: `/v1/event_exports/${made.id}/files/${n}`, size_bytes: bytes, sha256, rows },
    })),
    error: made.error,
    created_at: instantOf(made.createdAt),
    completed_at: nullableInstantOf(made.completedAt),
    expires_at: instantOf(made.createdAt + exportKeptMs),
  }
}
