import Type, { type Static } from 'typebox'
import type { Pool } from '../../db/pool.ts'
import { parseTimestamp } from '../../events/index.ts'
import { refuse } from '../../kernel/errors.ts'
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
      const page = pageOf(query, { test: isDay })
      const scope = look.scope(query.project_id)
      const days = await listUsage(
        pool,
        scope.scopeId,
        { from: dayOf(query.from, 'from'), to: dayOf(query.to, 'to') },
        page,
      )
      return listAnswer(days, page, { show: (each) => show(each, scope), positionOf: (each) => each.day })
    },
  )
}

/** A day of the calendar as the database has it: the schema lets the year 0000 pass, a cursor any digits. */
function isDay(text: string): boolean {
  return text.length === 10 && parseTimestamp(text) !== null
}

function dayOf(text: string | undefined, param: string): string | null {
  if (text === undefined) return null
  if (!isDay(text)) throw refuse('invalid_request', { param, message: `${param} must be a day from 0001 to 9999` })
  return text
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
