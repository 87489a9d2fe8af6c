import type { Draft, DraftStep } from './draft.ts'
import { type Findings, under } from './findings.ts'
import { isObject, type JsonObject } from './shape.ts'

/** What kinds of values a comparison tells apart: clients convert none into another. */
type Kind = 'text' | 'number' | 'boolean' | 'list' | 'null'

const kindOf: Record<string, Kind> = {
  ...{ string: 'text', text: 'text', date: 'text', enum: 'text', number: 'number', boolean: 'boolean' },
  ...{ multi_enum: 'list', null: 'null' },
}
const literals: Record<string, Kind> = { String: 'text', Number: 'number', Boolean: 'boolean', Array: 'list' }

interface Read {
  field: string
  as: Kind[]
}

/** Whether declared fields are read as what they are: compared with what can be equal, searched only when they are lists. */
export function checkFieldTypes(draft: Draft, findings: Findings): void {
  for (const [i, step] of draft.graph.steps.entries()) {
    for (const { field, as } of readsOf(draft, step)) {
      const declared = typeOf(draft, field)
      const kind = declared === undefined ? undefined : kindOf[declared]
      if (declared === undefined || kind === undefined || as.includes(kind)) continue
      const key = field.slice(field.indexOf('.') + 1)
      const message = `"${step.id}" reads field "${key}" as ${as.join(' or ')}; declared as ${declared}.`
      findings.add(under('/graph/steps', i, 'action'), 'field_type', message)
    }
  }
}

/** Undefined for what is not declared, which is told elsewhere. */
function typeOf({ fields = {} }: Draft, field: string): string | undefined {
  const [kind, key] = [
    field.startsWith('event.') ? fields.event : fields.responses,
    field.slice(field.indexOf('.') + 1),
  ]
  return kind && Object.hasOwn(kind, key) ? kind[key]?.type : undefined
}

function readsOf(draft: Draft, { plane, action }: DraftStep): Read[] {
  const { type, url, until, entityField } = action
  if (plane === 'device') {
    return [
      ...(type === 'open_link' ? as(url, ['text']) : []),
      ...[...objectsIn(action)].flatMap((one) => inCondition(draft, one)),
    ]
  }
  const time =
    isObject(until) && typeof until.field === 'string' ? [{ field: until.field, as: ['text', 'number'] as Kind[] }] : []
  return [...time, ...(typeof entityField === 'string' ? [{ field: entityField, as: ['text'] as Kind[] }] : [])]
}

function inCondition(draft: Draft, { type, op, left, right, collection }: JsonObject): Read[] {
  if (type === 'Contains') return as(collection, ['list'])
  if (type !== 'Compare') return []
  const ordered = op !== '==' && op !== '!='
  const against = (one: unknown, other: unknown): Read[] => {
    const kind = kindIn(draft, other)
    // Whether something is null may be asked of anything; what has an order is text or a number.
    if (kind === 'null') return []
    return kind === undefined ? (ordered ? as(one, ['text', 'number']) : []) : as(one, [kind])
  }
  return [...against(left, right), ...(fieldIn(left) === undefined ? against(right, left) : [])]
}

function kindIn(draft: Draft, value: unknown): Kind | undefined {
  if (!isObject(value) || typeof value.type !== 'string') return undefined
  if (value.type === 'Null') return 'null'
  const field = fieldIn(value)
  const declared = field === undefined ? undefined : typeOf(draft, field)
  return declared === undefined ? literals[value.type] : kindOf[declared]
}

function as(value: unknown, kinds: Kind[]): Read[] {
  const field = fieldIn(value)
  return field === undefined ? [] : [{ field, as: kinds }]
}

function fieldIn(value: unknown): string | undefined {
  if (!isObject(value) || typeof value.key !== 'string' || value.form !== undefined) return undefined
  if (value.type === 'Event.Field') return `event.${value.key}`
  return value.type === 'Response.Field' ? `responses.${value.key}` : undefined
}

function* objectsIn(value: unknown): Generator<JsonObject> {
  if (Array.isArray(value)) for (const item of value) yield* objectsIn(item)
  else if (isObject(value)) {
    yield value
    for (const member of Object.values(value)) yield* objectsIn(member)
  }
}
