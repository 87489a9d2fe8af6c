import {
  type Filter,
  fieldsOf,
  parseFilters,
  parseKey,
  parseOperator,
  type Report,
  testOf,
  testOfFilters,
} from '../../events/index.ts'
import {
  eventNameCharsMax,
  featureIdCharsMax,
  segmentCountMax,
  segmentSumMax,
  segmentWindowDaysMax,
} from '../../kernel/limits.ts'
import { codePoints, isBlank, isStorable } from '../../kernel/text.ts'
import type { Compare } from './amount.ts'
import type { Leaf, Times } from './definition.ts'
import { millionthsOf } from './leaf.ts'
import { parseInstant } from './parse-instant.ts'

export const leafKinds = [
  'property',
  'performed',
  'first_performed',
  'last_performed',
  'sum',
  'segment',
  'feature',
] as const
export type LeafKind = (typeof leafKinds)[number]

/** Reads what stands under a leaf's name. Null when something was reported. */
export function parseLeaf(kind: LeafKind, json: unknown, path: string, report: Report): Leaf | null {
  switch (kind) {
    case 'property':
      return parseProperty(json, path, report)
    case 'performed':
      return parsePerformed(json, path, report)
    case 'first_performed':
      return parseOnce('first', json, path, report)
    case 'last_performed':
      return parseOnce('last', json, path, report)
    case 'sum':
      return parseSum(json, path, report)
    case 'segment':
      return parseSegment(json, path, report)
    case 'feature':
      return parseFeature(json, path, report)
  }
}

function parseProperty(json: unknown, path: string, report: Report): Leaf | null {
  const fields = fieldsOf(json, ['key', 'op', 'value'], path, report)
  if (!fields) return null
  const key = parseKey(fields.key, `${path}.key`, report)
  const rest = parseOperator(fields, path, report)
  return key === null || rest === null ? null : { kind: 'property', key, passes: testOf(rest.op, rest.value ?? null) }
}

function parsePerformed(json: unknown, path: string, report: Report): Leaf | null {
  const fields = fieldsOf(json, ['event', 'filters', 'count', 'within'], path, report)
  if (!fields) return null
  const source = parseSource(fields, path, report)
  const compare = fields.count === undefined ? atLeastOnce : parseCount(fields.count, `${path}.count`, report)
  const windowMs = parseWithin(fields.within, path, report)
  return source && compare && windowMs !== undefined ? { kind: 'performed', ...source, compare, windowMs } : null
}

const atLeastOnce: Compare = { op: 'gte', value: 1 }

function parseCount(json: unknown, path: string, report: Report): Compare | null {
  const fields = fieldsOf(json, ['op', 'value'], path, report)
  if (!fields) return null
  const op = oneOf(['eq', 'gte', 'lte'] as const, fields.op, `${path}.op`, report)
  const { value } = fields
  if (typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= segmentCountMax) {
    return op && { op, value }
  }
  report(`${path}.value`, `must be a whole number of 0 to ${segmentCountMax}`)
  return null
}

function parseSum(json: unknown, path: string, report: Report): Leaf | null {
  const fields = fieldsOf(json, ['event', 'filters', 'property', 'op', 'value', 'within'], path, report)
  if (!fields) return null
  const source = parseSource(fields, path, report)
  const property = parseKey(fields.property, `${path}.property`, report)
  const op = oneOf(['eq', 'gt', 'gte', 'lt', 'lte'] as const, fields.op, `${path}.op`, report)
  const value = millionthsOf(fields.value)
  if (value === null) report(`${path}.value`, `must be a number between -${segmentSumMax} and ${segmentSumMax}`)
  const windowMs = parseWithin(fields.within, path, report)
  if (!source || property === null || !op || value === null || windowMs === undefined) return null
  return { kind: 'sum', ...source, property, compare: { op, value }, windowMs }
}

function parseOnce(kind: 'first' | 'last', json: unknown, path: string, report: Report): Leaf | null {
  const fields = fieldsOf(json, ['event', 'filters', 'before', 'after', 'ago'], path, report)
  if (!fields) return null
  const source = parseSource(fields, path, report)
  if (fields.before === undefined && fields.after === undefined && fields.ago === undefined) {
    report(path, 'must have at least one of before, after, ago')
    return null
  }
  const before = parseInstant(fields.before, `${path}.before`, report)
  const after = parseInstant(fields.after, `${path}.after`, report)
  const ago = fields.ago === undefined ? null : parseAgo(fields.ago, `${path}.ago`, report)
  if (!source || before === undefined || after === undefined || ago === undefined) return null
  return { kind, ...source, times: { before, after, ago } }
}

function parseAgo(json: unknown, path: string, report: Report): Times['ago'] | undefined {
  const fields = fieldsOf(json, ['op', 'value', 'unit'], path, report)
  if (!fields) return undefined
  const op = oneOf(['gte', 'lte'] as const, fields.op, `${path}.op`, report)
  const ms = parseSpan(fields, path, report)
  return op && ms !== null ? { op, ms } : undefined
}

function parseSegment(json: unknown, path: string, report: Report): Leaf | null {
  const fields = fieldsOf(json, ['id', 'is'], path, report)
  if (!fields) return null
  const id = parseText(fields.id, 64, `${path}.id`, report)
  if (typeof fields.is !== 'boolean') report(`${path}.is`, 'must be true or false')
  return id !== null && typeof fields.is === 'boolean' ? { kind: 'segment', id, is: fields.is } : null
}

function parseFeature(json: unknown, path: string, report: Report): Leaf | null {
  const fields = fieldsOf(json, ['id', 'is'], path, report)
  if (!fields) return null
  const feature = parseText(fields.id, featureIdCharsMax, `${path}.id`, report)
  const is = oneOf(['active', 'inactive'] as const, fields.is, `${path}.is`, report)
  return feature !== null && is ? { kind: 'feature', feature, active: is === 'active' } : null
}

/** Directives and identities are no properties of an event: how they were sent is not kept. */
const notProperties = new Set(['$set', '$set_once', '$unset', '$increment', '$anon_distinct_id'])

function parseSource(fields: { event?: unknown; filters?: unknown }, path: string, report: Report) {
  const event = parseText(fields.event, eventNameCharsMax, `${path}.event`, report)
  const filters: Filter[] = fields.filters === undefined ? [] : parseFilters(fields.filters, `${path}.filters`, report)
  for (const [i, { property }] of filters.entries()) {
    if (notProperties.has(property))
      report(`${path}.filters[${i}].property`, 'is a directive, not a property of the event')
  }
  return event === null ? null : { event, passes: testOfFilters(filters) }
}

/** Null: no window. Undefined: something was reported. */
function parseWithin(json: unknown, path: string, report: Report): number | null | undefined {
  if (json === undefined) return null
  const fields = fieldsOf(json, ['value', 'unit'], `${path}.within`, report)
  return (fields && parseSpan(fields, `${path}.within`, report)) ?? undefined
}

const unitMs = { minute: 60_000, hour: 3600_000, day: 86_400_000, week: 7 * 86_400_000 }

function parseSpan(fields: { value?: unknown; unit?: unknown }, path: string, report: Report): number | null {
  const { value } = fields
  const unit = oneOf(['minute', 'hour', 'day', 'week'] as const, fields.unit, `${path}.unit`, report)
  if (typeof value !== 'number' || !Number.isInteger(value) || value < 1) {
    report(`${path}.value`, 'must be a whole number of at least 1')
    return null
  }
  if (unit && value * unitMs[unit] > segmentWindowDaysMax * unitMs.day) {
    report(path, `must be at most ${segmentWindowDaysMax} days`)
    return null
  }
  return unit && value * unitMs[unit]
}

function oneOf<const Name extends string>(
  names: readonly Name[],
  value: unknown,
  path: string,
  report: Report,
): Name | null {
  const found = names.find((name) => name === value)
  if (found === undefined) report(path, `must be one of ${names.join(', ')}`)
  return found ?? null
}

function parseText(value: unknown, charsMax: number, path: string, report: Report): string | null {
  const fits =
    typeof value === 'string' && !isBlank(value) && isStorable(value) && codePoints(value, charsMax) <= charsMax
  if (fits) return value
  report(path, `must be a text of 1 to ${charsMax} characters`)
  return null
}
