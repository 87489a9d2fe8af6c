import { also, boolean, bytes, list, number, object, type Shape, type Shaped, tagged, text, word } from './shape.ts'
import { jid } from './values.ts'

/** Fields that are declared with a type, as clients read them. */

const isOrdered = ({ min = -Infinity, max = Infinity }: { min?: number; max?: number }) => min <= max
const areDistinct = (values: string[]) => new Set(values).size === values.length
const choices = (choice: Shape<string>) =>
  also(list(choice, { min: 1, max: 256 }), 'name each choice once', areDistinct)

function numbers<R extends Record<string, Shape<unknown>>>(required: R) {
  return also(object(required, { min: number(), max: number() }), 'have a min that is not above its max', isOrdered)
}

const required = { required: boolean }
export const eventField = tagged('type', {
  string: object(required, { enum: choices(jid) }),
  number: numbers(required),
  boolean: object(required),
  null: object(required),
  json: object(required),
})
export const responseField = tagged('type', {
  text: object(required),
  date: object(required),
  number: numbers(required),
  boolean: object(required),
  enum: object({ ...required, options: choices(text()) }),
  multi_enum: object({ ...required, options: choices(text()) }),
})
export const responseKey = bytes(128)

const keyed = { key: jid, ...required }
const keyedField = tagged('type', {
  string: object(keyed, { enum: choices(jid) }),
  number: numbers(keyed),
  boolean: object(keyed),
  null: object(keyed),
  json: object(keyed),
})

/** Of an event that a device waits for. */
export const payloadSchema = object({
  type: word('object'),
  fields: also(
    list(keyedField, { max: 256 }),
    'list its fields once each, in the order of the bytes of their keys',
    isAscending,
  ),
  additionalProperties: boolean,
})

function isAscending(fields: Shaped<typeof keyedField>[]): boolean {
  const keys = fields.map(({ key }) => Buffer.from(key))
  return keys.every((key, i) => i === 0 || Buffer.compare(keys[i - 1] ?? key, key) < 0)
}
