import Type from 'typebox'
import { byDistinctId, parseCustomerId, recordsOf } from '../../customers/index.ts'
import type { Pool } from '../../db/pool.ts'
import {
  type CursorSigner,
  createGetEvent,
  createListEvents,
  type EventLog,
  type ListQuery,
  takeBatch,
} from '../../events/index.ts'
import type { Clock } from '../../kernel/clock.ts'
import { refuse } from '../../kernel/errors.ts'
import { isUuid } from '../../kernel/ids.ts'
import {
  batchBodyBytesMax,
  batchInflatedBytesMax,
  batchItemsMax,
  eventNameCharsMax,
  eventPageMax,
} from '../../kernel/limits.ts'
import { getApp, type Scope } from '../../tenancy/index.ts'
import { BatchReply } from '../app/batch.ts'
import { eventFields } from '../app/event-fields.ts'
import { closed, customerId, instant, nullableString, oneOf } from '../schema.ts'
import { findCustomer } from './customers.ts'
import type { Endpoints } from './endpoint.ts'
import { EventObject, eventObject, freshnessFields, freshnessOf } from './event-object.ts'
import { timeOf } from './grants.ts'
import { byId, id, projectId } from './parts.ts'

export interface EventServices {
  pool: Pool
  clock: Clock
  appendBatch: EventLog['appendBatch']
  /** Connections for lists of events. */
  listPool: Pool
  cursors: CursorSigner
}

const tag = 'Events'

export const eventName = Type.String({ minLength: 1, maxLength: eventNameCharsMax, 'x-storable': true })

const pageQuery = {
  limit: Type.Optional(
    Type.String({ pattern: '^([1-9][0-9]{0,2}|1000)$', description: `1 to ${eventPageMax}, default 100` }),
  ),
  cursor: Type.Optional(
    Type.String({ minLength: 1, maxLength: 1024, description: '`next_cursor` of the page before' }),
  ),
  start: Type.Optional(instant),
  end: Type.Optional(Type.String({ format: 'date-time', description: 'Exclusive.' })),
  event: Type.Optional(eventName),
  app_id: Type.Optional(id),
  order: Type.Optional(oneOf('asc', 'desc')),
}

const EventList = Type.Object({
  object: Type.Literal('list'),
  data: Type.Array(EventObject),
  has_more: Type.Boolean(),
  next_cursor: nullableString,
  ...freshnessFields,
})

export function events({ get, ask }: Endpoints, services: EventServices): void {
  const { pool, clock, appendBatch, listPool, cursors } = services
  const list = createListEvents({ pool: listPool, cursors })
  const find = createGetEvent({ pool: listPool })

  const listed = async (scope: Scope, query: PageQuery, of: Pick<ListQuery, 'customerIds' | 'distinctId' | 'sort'>) => {
    const { limit = '100', cursor = null, order, event, app_id: appId = null } = query
    if (of.sort === 'position' && order === 'desc') {
      throw refuse('invalid_request', { param: 'order', message: 'order by position is asc' })
    }
    const page = await list(
      scope,
      {
        ...{ ...of, appId, events: event === undefined ? null : [event], newestFirst: order !== 'asc' },
        ...{ start: timeOf(query.start, 'start'), end: timeOf(query.end, 'end') },
      },
      { limit: Number(limit), cursor },
    )
    return {
      object: 'list' as const,
      data: page.events.map(eventObject),
      has_more: page.hasMore,
      next_cursor: page.nextCursor,
      ...freshnessOf(page.freshness),
    }
  }

  ask(
    {
      path: '/events',
      operationId: 'recordEvents',
      tag,
      summary: 'Record events from your backend',
      description:
        'Each is judged by itself, the valid ones are stored together; read `errors`. Retry with the same UUIDs. They count as `server`, which an app cannot claim. The body may be compressed with gzip.',
      takes: { bodyLimit: batchBodyBytesMax, inflatedBytesMax: batchInflatedBytesMax },
      body: closed({
        project_id: projectId,
        app_id: Type.Optional(id),
        events: Type.Array(Type.Unknown({ description: `An event: ${Object.keys(eventFields).join(', ')}.` }), {
          minItems: 1,
          maxItems: batchItemsMax,
        }),
      }),
      answers: { 200: BatchReply },
      errors: [404, 409],
    },
    async (under, { body }) => {
      const scope = under.scope(body.project_id)
      const appId = body.app_id ?? null
      if (
        appId !== null &&
        (await getApp(pool, scope.workspaceId, scope.environment, appId)).projectId !== scope.projectId
      ) {
        throw refuse('not_found', { param: 'app_id' })
      }
      const receipt = { receivedAt: clock.now(), trust: 'server', stream: 'live' } as const
      const origin = { scopeId: scope.scopeId, appId }
      return { status: 200, body: await takeBatch(appendBatch, origin, body.events, receipt) }
    },
  )

  get(
    {
      path: '/events',
      operationId: 'listEvents',
      tag,
      summary: 'List events',
      description:
        'By `timestamp`, newest first unless `order` says otherwise: the pages of one walk hold every event that was there at the first one. By `position` for copies elsewhere: `next_cursor` is never null and goes on for ever; whoever has read up to it never misses an event and gets none twice. A page may hold fewer than `limit`: go by `has_more`.',
      query: closed({
        project_id: projectId,
        ...pageQuery,
        sort: Type.Optional(oneOf('timestamp', 'position')),
        distinct_id: Type.Optional(customerId),
        customer_id: Type.Optional(id),
      }),
      answers: { 200: EventList },
      errors: [404],
    },
    async (look, { query }) => {
      const scope = look.scope(query.project_id)
      const { sort = 'timestamp', distinct_id: distinctId = null, customer_id: wanted } = query
      const named = distinctId === null ? null : await byDistinctId(listPool, scope, distinctId)
      const asked = wanted === undefined ? null : parseCustomerId(wanted)
      if (wanted !== undefined && asked === null) throw refuse('not_found', { param: 'customer_id' })
      const ids =
        asked === null ? named && [named.id] : [(await findCustomer(listPool, [scope], wanted ?? '')).customer.id]
      const customerIds = ids !== null ? await recordsOf(listPool, scope, ids) : distinctId === null ? null : []
      return listed(scope, query, { sort, distinctId, customerIds })
    },
  )

  get(
    {
      path: '/events/:id',
      operationId: 'getEvent',
      tag,
      summary: 'Get an event',
      description: 'By the uuid it was sent with. 404 while it waits to be applied.',
      params: byId,
      query: closed({ project_id: projectId }),
      answers: { 200: Type.Object({ ...EventObject.properties, ...freshnessFields }) },
      errors: [404],
    },
    async (look, { params, query }) => {
      if (!isUuid(params.id)) throw refuse('not_found')
      for (const scope of look.scopes(query.project_id)) {
        const found = await find(scope, params.id.toLowerCase())
        if (found) return { ...eventObject(found.event), ...freshnessOf(found.freshness) }
      }
      throw refuse('not_found')
    },
  )

  get(
    {
      path: '/customers/:id/events',
      operationId: 'listCustomerEvents',
      tag: 'Customers',
      summary: 'List the events of a customer',
      description: 'By timestamp, newest first; those of customers that were merged into this one included.',
      params: byId,
      query: closed(pageQuery),
      answers: { 200: EventList },
      errors: [404],
    },
    async (look, { params, query }) => {
      const { customer, scope } = await findCustomer(listPool, look.scopes(), params.id)
      const customerIds = await recordsOf(listPool, scope, [customer.id])
      return listed(scope, query, { sort: 'timestamp', distinctId: null, customerIds })
    },
  )
}

interface PageQuery {
  limit?: string
  cursor?: string
  start?: string
  end?: string
  event?: string
  app_id?: string
  order?: 'asc' | 'desc'
}
