import { assert, unreachable } from '../../kernel/assert.ts'
import { parseTimestamp } from '../timestamp.ts'
import type { Json } from '../types.ts'
import type { Params } from './params.ts'
import type { PropertyFilter } from './types.ts'

/**
 * A condition on one property of the jsonb expression `properties`, as SQL that is never null: what conditions/operators.ts
 * says, over the same values. Nothing in it can fail on any value, in whatever order PostgreSQL evaluates it.
 */
export function conditionOf(
  params: Params,
  properties: string,
  { property, op, value = null }: PropertyFilter,
): string {
  const found = `${properties} -> ${params.add(property)}::text`
  const text = `((${found}) #>> '{}')`
  const json = (each: Json) => `${params.add(JSON.stringify(each))}::jsonb`
  const texts = (condition: (given: string) => string) =>
    holds(`jsonb_typeof(${found}) = 'string' and ${condition(`${params.add(textOf(value))}::text`)}`)
  const several = () => `${params.add(listOf(value).map((each) => JSON.stringify(each)))}::text[]::jsonb[]`
  switch (op) {
    case 'exists':
      return `(${found} is not null)`
    case 'not_exists':
      return `(${found} is null)`
    case 'eq':
      return holds(`${found} = ${json(value)}`)
    case 'neq':
      return holds(`${found} <> ${json(value)}`)
    case 'in':
      return holds(`${found} = any (${several()})`)
    case 'not_in':
      return holds(`${found} <> all (${several()})`)
    case 'contains':
      return holds(containing(params, found, value))
    case 'not_contains':
      return `(${found} is not null and not ${holds(containing(params, found, value))})`
    case 'starts_with':
      return texts((given) => `starts_with(${text}, ${given})`)
    case 'ends_with':
      return texts((given) => `right(${text}, length(${given})) = ${given}`)
    case 'gt':
    case 'gte':
    case 'lt':
    case 'lte':
      return holds(ordered(params, found, signs[op], value))
    case 'between': {
      const [low = null, high = null] = listOf(value)
      return holds(`${ordered(params, found, '>=', low)} and ${ordered(params, found, '<=', high)}`)
    }
    default:
      return unreachable(op)
  }
}

const signs = { gt: '>', gte: '>=', lt: '<', lte: '<=' } as const

/** A text contains a text; a list contains an element. */
function containing(params: Params, found: string, value: Json): string {
  const element = `jsonb_typeof(${found}) = 'array' and ${found} @> ${params.add(JSON.stringify([value]))}::jsonb`
  if (typeof value !== 'string') return `(${element})`
  const part = `strpos((${found}) #>> '{}', ${params.add(value)}::text) > 0`
  return `(case jsonb_typeof(${found}) when 'string' then ${part} else ${element} end)`
}

/** The bound decides what is compared. */
function ordered(params: Params, found: string, sign: string, bound: Json): string {
  if (typeof bound === 'number') {
    // jsonb compares numbers with numbers as such; a cast of the text could be tried on text.
    return `(jsonb_typeof(${found}) = 'number' and ${found} ${sign} ${params.add(JSON.stringify(bound))}::jsonb)`
  }
  const text = `((${found}) #>> '{}')`
  const given = textOf(bound)
  const at = parseTimestamp(given)
  const compared =
    at === null
      ? `${text} collate "C" ${sign} ${params.add(given)}::text`
      : `event_instant(${text}) ${sign} ${params.add(at)}::float8`
  return `(jsonb_typeof(${found}) = 'string' and ${compared})`
}

/** False instead of null. */
function holds(condition: string): string {
  return `coalesce(${condition}, false)`
}

/** Of operators that take texts, as they were read. */
function textOf(value: Json): string {
  assert(typeof value === 'string', 'the operator takes a text')
  return value
}

function listOf(value: Json): Json[] {
  return Array.isArray(value) ? value : [value]
}
