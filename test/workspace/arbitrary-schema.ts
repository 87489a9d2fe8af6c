import fc, { type Arbitrary } from '../harness/random.ts'

/** What our documents use of JSON Schema. */
export interface Schema {
  $ref?: string
  type?: string | string[]
  enum?: unknown[]
  const?: unknown
  anyOf?: Schema[]
  oneOf?: Schema[]
  properties?: Record<string, Schema>
  required?: string[]
  additionalProperties?: boolean | Schema
  items?: Schema
  minItems?: number
  maxItems?: number
  minLength?: number
  maxLength?: number
  minimum?: number
  maximum?: number
  exclusiveMinimum?: number
  format?: string
  pattern?: string
}

/** Values that mostly fit a schema of `document`; texts are often among those `known`. Deeper than a few levels only the least. */
export function arbitraryOf(schema: Schema, document: object, known: string[], depth = 0): Arbitrary<unknown> {
  const inner = (of: Schema) => arbitraryOf(of, document, known, depth + 1)
  if (schema.$ref !== undefined) return inner(find(document, schema.$ref))
  if ('const' in schema) return fc.constant(schema.const)
  if (schema.enum) return fc.constantFrom(...schema.enum)
  const choices = schema.anyOf ?? schema.oneOf
  if (choices) return depth > 6 ? inner(choices[0] ?? {}) : fc.oneof(...choices.map(inner))
  const [type = 'any', ...others] = [schema.type ?? (schema.properties ? 'object' : 'any')].flat()
  if (others.length > 0) return fc.oneof(...[type, ...others].map((one) => inner({ ...schema, type: one })))
  switch (type) {
    case 'string':
      return textOf(schema, known)
    case 'integer':
    case 'number':
      return numberOf(schema)
    case 'boolean':
      return fc.boolean()
    case 'null':
      return fc.constant(null)
    case 'array':
      return fc.array(inner(schema.items ?? {}), {
        minLength: schema.minItems ?? 0,
        maxLength: Math.max(schema.minItems ?? 0, 3),
      })
    case 'object':
      return objectOf(schema, inner)
    default:
      return fc.jsonValue({ maxDepth: 2 })
  }
}

function objectOf(
  { properties = {}, required = [], additionalProperties }: Schema,
  inner: (schema: Schema) => Arbitrary<unknown>,
) {
  const fields = fc.record(Object.fromEntries(Object.entries(properties).map(([name, of]) => [name, inner(of)])), {
    requiredKeys: required.filter((name) => name in properties),
  })
  if (Object.keys(properties).length > 0 || additionalProperties === false) return fields
  return fc.dictionary(
    fc.string({ maxLength: 10 }),
    inner(typeof additionalProperties === 'object' ? additionalProperties : {}),
    { maxKeys: 3 },
  )
}

function textOf({ format, pattern, minLength = 0, maxLength = 300 }: Schema, known: string[]): Arbitrary<string> {
  if (format === 'date-time')
    return fc
      .date({ min: new Date('2020-01-01'), max: new Date('2040-01-01'), noInvalidDate: true })
      .map((date) => date.toISOString())
  if (format === 'date')
    return fc
      .date({ min: new Date('2020-01-01'), max: new Date('2040-01-01'), noInvalidDate: true })
      .map((date) => date.toISOString().slice(0, 10))
  if (format === 'email') return fc.emailAddress()
  if (format === 'uuid') return fc.uuid()
  if (pattern !== undefined && pattern.length < 200)
    return fc.oneof(fc.stringMatching(new RegExp(pattern)), fc.string())
  const any = fc.string({ unit: 'binary', minLength, maxLength: Math.min(maxLength, minLength + 20) })
  return fc.oneof(
    { weight: 4, arbitrary: fc.constantFrom(...known) },
    { weight: 2, arbitrary: fc.stringMatching(/^[a-z]{3,12}$/) },
    any,
  )
}

function numberOf({ type, minimum = -5, maximum = 1000, exclusiveMinimum }: Schema): Arbitrary<number> {
  const min = Math.ceil(exclusiveMinimum === undefined ? minimum : exclusiveMinimum + 1)
  const max = Math.max(min, Math.floor(maximum))
  const whole = fc.oneof(
    fc.integer({ min: Math.max(min, -(2 ** 31)), max: Math.min(max, min + 1000) }),
    fc.constantFrom(min, max),
  )
  return type === 'number' ? fc.oneof(whole, fc.double({ noNaN: true, noDefaultInfinity: true })) : whole
}

function find(document: object, pointer: string): Schema {
  let value: unknown = document
  for (const part of pointer.split('/').slice(1)) {
    value = (value as Record<string, unknown>)[part.replaceAll('~1', '/').replaceAll('~0', '~')] // a reference of a valid document
  }
  return value as Schema
}
