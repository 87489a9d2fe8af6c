import Type from 'typebox'
import type { Pool } from '../../db/pool.ts'
import { createDiscover } from '../../events/index.ts'
import { propertyKeyCharsMax } from '../../kernel/limits.ts'
import { closed, instant, oneOf } from '../schema.ts'
import type { Endpoints } from './endpoint.ts'
import { freshnessFields, freshnessOf } from './event-object.ts'
import { eventName } from './events.ts'
import { projectId } from './parts.ts'

const tag = 'Events'

const property = Type.String({ minLength: 1, maxLength: propertyKeyCharsMax, 'x-storable': true })

const whole = {
  object: Type.Literal('list'),
  has_more: Type.Literal(false),
  next_cursor: Type.Null(),
  truncated: Type.Boolean({ description: 'There were more than are kept.' }),
  ...freshnessFields,
}

/** What questions can be asked about: given whole, by name. */
export function eventNames({ get }: Endpoints, pool: Pool): void {
  const discover = createDiscover(pool)

  get(
    {
      path: '/event_names',
      operationId: 'listEventNames',
      tag,
      summary: 'List the names of events',
      description: 'Up to 2,000. `hidden` are system events that few people ask about.',
      query: closed({ project_id: projectId }),
      answers: {
        200: Type.Object({
          ...whole,
          data: Type.Array(
            Type.Object(
              {
                object: Type.Literal('event_name'),
                id: Type.String({ description: 'The name.' }),
                name: Type.String(),
                recognised: Type.Boolean(),
                hidden: Type.Boolean(),
                first_seen: instant,
                last_seen: Type.Unsafe<string>({ ...instant, description: 'To the hour.' }),
              },
              { title: 'EventName' },
            ),
          ),
        }),
      },
      errors: [404],
    },
    async (look, { query }) => {
      const { data, truncated, freshness } = await discover.names(look.scope(query.project_id))
      return answer(
        data.map(({ event, recognised, hidden, firstSeen, lastSeen }) => ({
          ...{ object: 'event_name', id: event, name: event, recognised, hidden },
          ...{ first_seen: firstSeen.toISOString(), last_seen: lastSeen.toISOString() },
        })),
        { truncated, freshness },
      )
    },
  )

  get(
    {
      path: '/event_properties',
      operationId: 'listEventProperties',
      tag,
      summary: 'List the properties of events of one name',
      description: 'Up to 500, of keys with at most 200 characters.',
      query: closed({ project_id: projectId, event: eventName }),
      answers: {
        200: Type.Object({
          ...whole,
          data: Type.Array(
            Type.Object(
              {
                object: Type.Literal('event_property'),
                id: Type.String({ description: 'The key.' }),
                name: Type.String(),
                types: Type.Array(oneOf('string', 'number', 'boolean', 'null', 'array', 'object')),
                last_seen: Type.Unsafe<string>({ ...instant, description: 'To the hour.' }),
              },
              { title: 'EventProperty' },
            ),
          ),
        }),
      },
      errors: [404],
    },
    async (look, { query }) => {
      const { data, truncated, freshness } = await discover.properties(look.scope(query.project_id), query.event)
      return answer(
        data.map(({ property: name, types, lastSeen }) => ({
          ...{ object: 'event_property', id: name, name, types, last_seen: lastSeen.toISOString() },
        })),
        { truncated, freshness },
      )
    },
  )

  get(
    {
      path: '/event_property_values',
      operationId: 'listEventPropertyValues',
      tag,
      summary: 'List values of a property',
      description:
        'The 100 most frequent of the newest 10,000 events of that name: texts, numbers, true and false, of at most 200 characters.',
      query: closed({
        project_id: projectId,
        event: eventName,
        property,
        prefix: Type.Optional(Type.String({ maxLength: propertyKeyCharsMax, 'x-storable': true })),
      }),
      answers: {
        200: Type.Object({
          ...whole,
          sampled: Type.Literal(true),
          data: Type.Array(
            Type.Object(
              {
                object: Type.Literal('event_property_value'),
                value: Type.Unknown(),
                count: Type.Integer(),
              },
              { title: 'EventPropertyValue' },
            ),
          ),
        }),
      },
      errors: [404],
    },
    async (look, { query }) => {
      const { event, property: key, prefix = '' } = query
      const found = await discover.values(look.scope(query.project_id), { event, property: key, prefix })
      const data = found.data.map(({ value, count }) => ({ object: 'event_property_value', value, count }))
      return { ...answer(data, found), sampled: true }
    },
  )
}

function answer(
  data: object[],
  { truncated, freshness }: { truncated: boolean; freshness: Parameters<typeof freshnessOf>[0] },
) {
  return { object: 'list', data, has_more: false, next_cursor: null, truncated, ...freshnessOf(freshness) }
}
