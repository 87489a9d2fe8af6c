import {
  anything,
  boolean,
  bytes,
  lazy,
  list,
  map,
  number,
  object,
  pattern,
  type Shape,
  tagged,
  text,
  whole,
  word,
} from './shape.ts'

/** Parts that device steps share: identifiers, values and conditions as clients read them. */

export const jid = bytes(256)
export const id = text()
export const stepId = text({ max: 128 })
export const eventName = bytes(200)
export const formName = pattern('a name: letters, digits and _', /^(?!(?:true|false|null)$)[A-Za-z_][A-Za-z0-9_]*$/)

export interface Value {
  type: string
  key?: string
}

const inText = {
  String: object({ value: text({ min: 0, max: 65_536 }) }),
  'Event.Field': object({ key: jid }),
  'Response.Field': object({ key: jid }, { form: formName }),
}

export const value: Shape<Value> = tagged('type', {
  ...inText,
  Null: object({}),
  Boolean: object({ value: boolean }),
  Number: object({ value: number() }),
  Array: object({
    items: list(
      lazy(() => value),
      { max: 256 },
    ),
  }),
  Object: object({ fields: lazy(() => values) }),
  'Customer.Field': object({ key: jid }),
})

/** An address, or a field that holds one. */
export const url: Shape<Value> = tagged('type', inText)

export const values: Shape<Record<string, Value>> = map(value, { key: jid, max: 256 })

export const condition: Shape<{ type: string }> = tagged('type', {
  Truthy: object({ value }),
  Compare: object({ op: word('==', '!=', '<', '<=', '>', '>='), left: value, right: value }),
  Contains: object({ collection: value, value }),
  All: object({ conditions: lazy(() => conditions) }),
  Any: object({ conditions: lazy(() => conditions) }),
  Not: object({ condition: lazy(() => condition) }),
})

const conditions: Shape<{ type: string }[]> = list(
  lazy(() => condition),
  { min: 1, max: 64 },
)

/** JSON the server sends on or stores, where it may be anything. */
export const json = anything

export const duration = object({ amount: whole(1, 1_000_000), unit: word('minute', 'hour', 'day', 'week') })
export type Duration = { amount: number; unit: 'minute' | 'hour' | 'day' | 'week' }
