import Type, { type Static } from 'typebox'
import type { Pool } from '../../db/pool.ts'
import { listUsage, type Scope, type UsageDay } from '../../tenancy/index.ts'
import { closed } from '../schema.ts'
import { amount, numberOrText } from './amount.ts'
import type { Endpoints } from './endpoint.ts'
import { listAnswer, listOf, listQuery, pageOf } from './list.ts'
import { environment, projectId } from './parts.ts'

const UsageStat = Type.Object(
  {
    object: Type.Literal('usage_stat'),
    id: Type.String({ description: 'The day.' }),
    project_id: Type.String(),
    environment,
    day: Type.String({ format: 'date', description: 'UTC' }),
    requests: amount,
    events: amount,
    decisions: amount,
  },
  { title: 'UsageStat' },
)

const day = Type.String({ format: 'date', description: 'Inclusive, UTC, such as `2026-11-20`.' })

export function usageStats({ get }: Endpoints, pool: Pool): void {
  get(
    {
      path: '/usage_stats',
      operationId: 'listUsageStats',
      tag: 'Use and changes',
      summary: 'List usage by day',
      description:
        'Of the App API, newest day first, days without use left out: requests with a valid key, events accepted (repeats included), and decisions of `/entitled` and `/feature/consume`. Figures for planning: a few seconds late, and a process that is killed loses what it counted since.',
      query: closed({
        ...listQuery,
        project_id: projectId,
        from: Type.Optional(day),
        to: Type.Optional(day),
      }),
      answers: { 200: listOf(UsageStat) },
      errors: [404],
    },
    async (look, { query }) => {
      const page = pageOf(query, /^\d{4}-\d\d-\d\d$/)
      const scope = look.scope(query.project_id)
      const days = await listUsage(pool, scope.scopeId, { from: query.from ?? null, to: query.to ?? null }, page)
      return listAnswer(days, page, { show: (each) => show(each, scope), positionOf: (each) => each.day })
    },
  )
}

function show({ day: on, requests, events, decisions }: UsageDay, scope: Scope): Static<typeof UsageStat> {
  return {
    object: 'usage_stat',
    id: on,
    project_id: scope.projectId,
    environment: scope.environment,
    day: on,
    requests: numberOrText(String(requests)),
    events: numberOrText(String(events)),
    decisions: numberOrText(String(decisions)),
  }
}
