import type { Issue } from '../../kernel/errors.ts'
import {
  conditionFiltersMax,
  conditionTextCharsMax,
  conditionValuesMax,
  propertyKeyCharsMax,
} from '../../kernel/limits.ts'
import { codePoints, isBlank, isStorable } from '../../kernel/text.ts'
import type { Json } from '../types.ts'
import type { Filter } from './filter.ts'
import { isRange, type Operand, type Operator, operandOf, operators } from './operators.ts'

/** Collects what is wrong with a definition, each with its place, such as `where.all[2].property.op`. */
export type Report = (path: string, message: string) => void

/** Reads a list of filters from unknown JSON. What is wrong is reported, and left out of the result. */
export function parseFilters(value: unknown, path: string, report: Report): Filter[] {
  if (!Array.isArray(value)) {
    report(path, 'must be a list of filters')
    return []
  }
  if (value.length > conditionFiltersMax) {
    report(path, `must have at most ${conditionFiltersMax} filters`)
    return []
  }
  return value.flatMap((item, i) => parseFilter(item, `${path}[${i}]`, report) ?? [])
}

/** Reads `{property, op, value?}`. Null when something was reported. */
export function parseFilter(value: unknown, path: string, report: Report): Filter | null {
  const fields = fieldsOf(value, ['property', 'op', 'value'], path, report)
  if (!fields) return null
  const property = parseKey(fields.property, `${path}.property`, report)
  const rest = parseOperator(fields, path, report)
  return property === null || rest === null ? null : { property, ...rest }
}

/** Reads `op` and the `value` that it asks for from an object that may have more. Null when something was reported. */
export function parseOperator(
  fields: { op?: unknown; value?: unknown },
  path: string,
  report: Report,
): { op: Operator; value?: Json } | null {
  const op = operators.find((name) => name === fields.op)
  if (op === undefined) {
    report(`${path}.op`, `must be one of ${operators.join(', ')}`)
    return null
  }
  const wrong = wrongValue(operandOf[op], fields.value)
  if (wrong !== null) {
    report(`${path}.value`, `${wrong} for ${op}`)
    return null
  }
  return operandOf[op] === 'none' ? { op } : { op, value: fields.value as Json } // wrongValue found it to be some
}

/** Reads a property's name. */
export function parseKey(value: unknown, path: string, report: Report): string | null {
  const fits = typeof value === 'string' && !isBlank(value) && isStorable(value)
  if (fits && codePoints(value, propertyKeyCharsMax) <= propertyKeyCharsMax) return value
  report(path, `must be a text of 1 to ${propertyKeyCharsMax} characters`)
  return null
}

/** The members of an object that may have the named ones only. Null when something was reported. */
export function fieldsOf<Key extends string>(
  value: unknown,
  known: readonly Key[],
  path: string,
  report: Report,
): Partial<Record<Key, unknown>> | null {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    report(path, 'must be an object')
    return null
  }
  const unknown = Object.keys(value).filter((key) => !known.some((name) => name === key))
  for (const key of unknown) report(`${path}.${key.slice(0, propertyKeyCharsMax)}`, 'is not known here')
  return unknown.length === 0 ? (value as Partial<Record<Key, unknown>>) : null // of the keys just checked
}

/** What is wrong with the value of an operator; null when nothing is. */
function wrongValue(operand: Operand, value: unknown): string | null {
  switch (operand) {
    case 'none':
      return value === undefined ? null : 'must be left out'
    case 'scalar':
      return isScalar(value)
        ? null
        : `must be a text of at most ${conditionTextCharsMax} characters, a number, true, false or null`
    case 'text':
      return isText(value) ? null : `must be a text of at most ${conditionTextCharsMax} characters`
    case 'bound':
      return isBound(value) ? null : 'must be a number or a text'
    case 'range':
      return isPair(value) && value.every(isBound) && isRange(value[0], value[1])
        ? null
        : 'must be two numbers, times or texts, the smaller one first,'
    case 'list':
      return Array.isArray(value) && value.length > 0 && value.length <= conditionValuesMax && value.every(isScalar)
        ? null
        : `must be a list of 1 to ${conditionValuesMax} values`
  }
}

function isScalar(value: unknown): value is string | number | boolean | null {
  return value === null || typeof value === 'boolean' || isBound(value)
}

function isBound(value: unknown): value is string | number {
  return isText(value) || (typeof value === 'number' && Number.isFinite(value))
}

function isText(value: unknown): value is string {
  return (
    typeof value === 'string' && codePoints(value, conditionTextCharsMax) <= conditionTextCharsMax && isStorable(value)
  )
}

function isPair(value: unknown): value is [Json, Json] {
  return Array.isArray(value) && value.length === 2
}

/** Throws away nothing: the first issues are enough to work with, thousands are not. */
export function collector(issuesMax: number): { issues: Issue[]; report: Report } {
  const issues: Issue[] = []
  return {
    issues,
    report: (path, message) => {
      if (issues.length < issuesMax) issues.push({ path, message })
    },
  }
}
