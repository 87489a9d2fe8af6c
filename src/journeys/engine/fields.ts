import type { Json, JsonObject } from '../../events/index.ts'
import type { DeclaredField, PlanFields } from '../../experiences/index.ts'
import type { PinnedPlan } from '../plan.ts'
import type { Context, Outputs } from '../types.ts'

/** What of the outputs is declared and of its type, and whether something was dropped. */
export function declaredOf(outputs: Outputs, declared: PlanFields | undefined): { kept: Outputs; dropped: boolean } {
  let dropped = false
  const keep = (values: JsonObject, fields: DeclaredField[]) => {
    const known = new Map(fields.map((field) => [field.key, field]))
    return Object.fromEntries(
      Object.entries(values).filter(([key, value]) => {
        const field = known.get(key)
        const fits = field !== undefined && fitsField(value, field)
        if (!fits) dropped = true
        return fits
      }),
    )
  }
  const kept = {
    event: keep(outputs.event, declared?.eventFields ?? []),
    responses: keep(outputs.responses, declared?.responseFields ?? []),
  }
  return { kept, dropped }
}

/** A required input that the context lacks. */
export function missingInput({ event, responses }: Context, inputs: PlanFields): string | null {
  const lacks = (values: JsonObject, fields: DeclaredField[]) =>
    fields.find(({ key, required }) => required && !Object.hasOwn(values, key))?.key
  const [fromEvent, fromResponses] = [lacks(event, inputs.eventFields), lacks(responses, inputs.responseFields)]
  if (fromEvent !== undefined) return `event.${fromEvent}`
  return fromResponses === undefined ? null : `responses.${fromResponses}`
}

/** Reads `event.<key>` or `responses.<key>`. */
export function fieldValue(context: Context, name: string): Json | undefined {
  const [kind, key] = partsOf(name)
  return Object.hasOwn(context[kind], key) ? context[kind][key] : undefined
}

/** The context with the declared ones of these values; others are dropped. */
export function withFields(plan: PinnedPlan, context: Context, values: Map<string, Json>): Context {
  const next: Context = { event: { ...context.event }, responses: { ...context.responses } }
  for (const [name, value] of values) {
    const [kind, key] = partsOf(name)
    const fields: Record<string, object> = plan.fields[kind] ?? {}
    const field = Object.hasOwn(fields, key) ? fields[key] : undefined
    // A declared field has a type and what goes with it: validation found it right.
    if (field && fitsField(value, { key, ...field } as DeclaredField)) define(next[kind], key, value)
  }
  return next
}

/** The declared fields of an event, as `event.<key>`. */
export function eventFieldsOf(plan: PinnedPlan, properties: JsonObject): Map<string, Json> {
  const keys = Object.keys(plan.fields.event ?? {}).filter((key) => Object.hasOwn(properties, key))
  return new Map(keys.map((key) => [`event.${key}`, properties[key] ?? null]))
}

export function merged(context: Context, { event, responses }: Outputs): Context {
  const next: Context = { event: { ...context.event }, responses: { ...context.responses } }
  for (const [key, value] of Object.entries(event)) define(next.event, key, value)
  for (const [key, value] of Object.entries(responses)) define(next.responses, key, value)
  return next
}

/** Keys may be called `__proto__`. */
function define(into: JsonObject, key: string, value: Json): void {
  Object.defineProperty(into, key, { value, enumerable: true, configurable: true, writable: true })
}

function partsOf(name: string): ['event' | 'responses', string] {
  const at = name.indexOf('.')
  return [name.slice(0, at) === 'event' ? 'event' : 'responses', name.slice(at + 1)]
}

export function fitsField(value: Json, { type, enum: choices, options = [], min, max }: DeclaredField): boolean {
  switch (type) {
    case 'string':
      return typeof value === 'string' && (choices === undefined || choices.includes(value))
    case 'text':
      return typeof value === 'string'
    case 'date':
      return typeof value === 'string' && !Number.isNaN(Date.parse(value))
    case 'number':
      return typeof value === 'number' && value >= (min ?? -Infinity) && value <= (max ?? Infinity)
    case 'boolean':
      return typeof value === 'boolean'
    case 'null':
      return value === null
    case 'json':
      return true
    case 'enum':
      return typeof value === 'string' && options.includes(value)
    case 'multi_enum':
      return Array.isArray(value) && value.every((one) => typeof one === 'string' && options.includes(one))
    default:
      return false
  }
}
