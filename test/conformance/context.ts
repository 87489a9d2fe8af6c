import {
  type At,
  also,
  areDistinct,
  type Check,
  distinct,
  exact,
  fields,
  flag,
  hold,
  id,
  integer,
  into,
  isObject,
  jid,
  list,
  number,
  type Of,
  type Tagged,
  tagged,
  textWhich,
} from './check.ts'

const responseKey = textWhich(
  (value) => value !== '' && value.length <= 256 && Buffer.byteLength(value) <= 128,
  'is a key of 1 to 128 bytes',
)
const atMost = { min: 1, max: 256 }
const choices = (check: Check<string>) => distinct(list(check, atMost), (each) => each, 'choice')

type FieldType = 'number' | 'boolean' | 'string' | 'null' | 'json' | 'text' | 'date' | 'enum' | 'multi_enum'
type Field = Tagged<'type', FieldType>

function declarations(check: Check<Field>): Check<Field[]> {
  const ordered = also(check, ({ min, max }, at) => {
    if (typeof min === 'number' && typeof max === 'number') hold(at, min <= max, 'has a min that is not above its max')
  })
  return distinct(list(ordered), ({ key }) => String(key), 'key')
}

const eventKey = { key: jid, required: flag }
const eventTypes = {
  number: fields(eventKey, { min: number(), max: number() }),
  boolean: fields(eventKey),
  string: fields(eventKey, { enum: choices(jid) }),
  null: fields(eventKey),
  json: fields(eventKey),
}
const answerKey = { key: responseKey, required: flag }
const answerTypes = {
  number: fields(answerKey, { min: number(), max: number() }),
  boolean: fields(answerKey),
  text: fields(answerKey),
  date: fields(answerKey),
  enum: fields({ ...answerKey, options: choices(id()) }),
  multi_enum: fields({ ...answerKey, options: choices(id()) }),
}

export const eventFields = declarations(tagged('type', eventTypes))
export const responseFields = declarations(tagged('type', answerTypes))

/** What a leg takes in, or an outcome brings out. */
export const declared = exact({ eventFields, responseFields })

const data = (value: unknown, at: At): value is Record<string, unknown> =>
  hold(
    at,
    isObject(value) && Object.keys(value).every((key) => key !== '' && key.length <= 256),
    'is an object of named values',
  )
export const context = exact({ event: data, responses: data })
export type Context = Of<typeof context>

/**
 * Holds the values of a side against its declarations. `missing` says whether a required key may be absent: a triggering event
 * brings its own values later.
 */
export function checkTyped(
  values: Record<string, unknown>,
  declarations: readonly Field[],
  { at, missing }: { at: At; missing: 'allowed' | 'refused' },
): void {
  const known = new Map(declarations.map((field) => [String(field.key), field]))
  for (const [key, value] of Object.entries(values)) {
    const field = known.get(key)
    const fits = field !== undefined && isOfType(value, field)
    hold(into(at, key), fits, field === undefined ? 'is declared by the leg' : `is of the declared type ${field.type}`)
  }
  if (missing === 'allowed') return
  for (const { key, required } of declarations) {
    hold(into(at, String(key)), required === false || Object.hasOwn(values, String(key)), 'is there, being required')
  }
}

function isOfType(value: unknown, field: Field): boolean {
  const options: unknown[] = Array.isArray(field.options) ? field.options : []
  switch (field.type) {
    case 'number': {
      const { min = -Infinity, max = Infinity } = field
      return typeof value === 'number' && Number.isFinite(value) && value >= Number(min) && value <= Number(max)
    }
    case 'boolean':
      return typeof value === 'boolean'
    case 'string':
      return typeof value === 'string' && (!Array.isArray(field.enum) || field.enum.includes(value))
    case 'text':
    case 'date':
      return typeof value === 'string'
    case 'null':
      return value === null
    case 'json':
      return true
    case 'enum':
      return options.includes(value)
    case 'multi_enum':
      return Array.isArray(value) && value.every((each) => options.includes(each)) && areDistinct(value)
  }
}

const fact = exact({ eventId: id(1024), occurredAt: integer() })

/** How a goal stands: told to clients on `continue` arms. */
export const conversion = also(
  exact({ startedAt: integer(), revision: integer() }, { basis: fact, conversion: fact }),
  ({ startedAt, basis, conversion }, at) => {
    if (basis !== undefined) hold(into(at, 'basis'), basis.occurredAt >= startedAt, 'is not before the start')
    if (conversion === undefined) return
    const after = basis !== undefined && conversion.occurredAt >= basis.occurredAt
    hold(into(at, 'conversion'), after, 'has a basis and is not before it')
  },
)
export type Conversion = Of<typeof conversion>
