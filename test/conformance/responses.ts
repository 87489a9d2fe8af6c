import { isDeepStrictEqual } from 'node:util'
import {
  type At,
  also,
  type Check,
  distinct,
  exact,
  fields,
  hold,
  id,
  integer,
  into,
  is,
  isObject,
  later,
  list,
  name,
  number,
  type Of,
  record,
  say,
  tagged,
  text,
} from './check.ts'

const rulesMax = 4096
const ruleBytesMax = 8 * 1024 * 1024

const values = distinct(list(text), (each) => each, 'value')
const inner: Check<Record<string, unknown>> = later(() => stateOf)
const variable = tagged('type', {
  string: fields(),
  number: fields(),
  boolean: fields(),
  color: fields(),
  date: fields(),
  trigger: fields(),
  image: fields(),
  enum: fields({ values }, { multiple: is(true) }),
  list: fields({ items: inner }),
})
const stateOf: Check<Record<string, unknown>> = record(name, variable)
export const state = stateOf

const rule = exact({
  model: text,
  property: text,
  kind: integer(1, 12),
  mode: integer(0, 1),
  number_bound: number(),
  text,
  values: list(text),
  value_count: integer(),
  picked_property: text,
  bound_flags: integer(0, 2),
  minimum: integer(),
  maximum: integer(),
  code: text,
  message: id(Number.MAX_SAFE_INTEGER),
})
type Rule = Of<typeof rule>

const reserved = ['valid', 'errors', 'saving', 'saved', 'saveError']
const field = also(
  exact(
    {
      key: name,
      label: text,
      type: is('string', 'number', 'boolean', 'enum', 'date'),
      rules: list(rule),
    },
    { values, multiple: is(true) },
  ),
  ({ key, type, values: offered, multiple }, at) => {
    hold(into(at, 'key'), !reserved.includes(key), 'is not a word of forms')
    hold(into(at, 'values'), (offered !== undefined) === (type === 'enum'), 'is there exactly for an enum')
    hold(into(at, 'multiple'), multiple === undefined || type === 'enum', 'is for an enum')
  },
)
type Field = Of<typeof field>

const form = exact({
  title: text,
  model: text,
  fields: distinct(list(field, { max: 4096 }), (each) => each.key, 'key'),
})

export const responses = also(record(name, form), (forms, at) => {
  const rules = Object.entries(forms).flatMap(([formName, { model, fields: all }]) => {
    const here = into(at, formName)
    hold(into(here, 'model'), model === `Responses:${formName}`, 'is named after the form')
    for (const [index, each] of all.entries()) checkRules(each, model, into(into(here, 'fields'), index))
    return all.flatMap((each) => each.rules)
  })
  hold(at, rules.length <= rulesMax && bytesOf(rules) <= ruleBytesMax, `has at most ${rulesMax} rules of 8 MiB`)
})
export type Responses = Of<typeof responses>

type Operand = 'number_bound' | 'text' | 'values' | 'minimum' | 'maximum'
interface Kind {
  kind: number
  fits: (field: Field) => boolean
  mode: number
  codes: string[]
  operand?: Operand
  flags?: number
}

const of =
  (...types: Field['type'][]) =>
  (each: Field) =>
    types.includes(each.type)
const many = (each: Field) => each.type === 'enum' && each.multiple === true
const kinds: Kind[] = [
  { kind: 1, fits: of('number'), mode: 0, codes: ['min'], operand: 'number_bound' },
  { kind: 2, fits: of('number'), mode: 1, codes: ['max'], operand: 'number_bound' },
  { kind: 3, fits: of('date'), mode: 0, codes: ['min'], operand: 'text' },
  { kind: 4, fits: of('date'), mode: 1, codes: ['max'], operand: 'text' },
  { kind: 12, fits: of('date'), mode: 0, codes: ['date'] },
  { kind: 5, fits: of('enum'), mode: 1, codes: ['values'], operand: 'values' },
  { kind: 7, fits: many, mode: 0, codes: ['minItems'], operand: 'minimum', flags: 1 },
  { kind: 7, fits: many, mode: 1, codes: ['maxItems'], operand: 'maximum', flags: 2 },
  { kind: 8, fits: of('string'), mode: 0, codes: ['minLength'], operand: 'minimum', flags: 1 },
  { kind: 8, fits: of('string'), mode: 1, codes: ['maxLength'], operand: 'maximum', flags: 2 },
  { kind: 9, fits: of('string'), mode: 0, codes: ['format', 'pattern'], operand: 'text' },
  { kind: 11, fits: of('string'), mode: 0, codes: ['format'] },
  { kind: 10, fits: () => true, mode: 0, codes: ['required'] },
]
const unused = { number_bound: 0, text: '', values: [], minimum: 0, maximum: 0 }

function checkRules(each: Field, model: string, at: At): void {
  each.rules.forEach((sent, index) => {
    const here = into(into(at, 'rules'), index)
    hold(here, sent.model === model && sent.property === each.key, 'names the field that it belongs to')
    hold(into(here, 'value_count'), sent.value_count === sent.values.length, 'counts the values')
    const kind = kinds.find(
      (known) => known.kind === sent.kind && known.mode === sent.mode && known.codes.includes(sent.code),
    )
    if (kind === undefined || !kind.fits(each)) {
      say(here, 'has a kind, mode and code that go with its field')
      return
    }
    checkOperands(sent, each, kind, here)
  })
}

function checkOperands(sent: Rule, each: Field, { operand, flags = 0, kind }: Kind, at: At): void {
  hold(into(at, 'bound_flags'), sent.bound_flags === flags, `is ${flags}`)
  hold(
    into(at, 'picked_property'),
    sent.picked_property === (kind === 7 ? 'picked' : ''),
    'is "picked" for a count of choices, else empty',
  )
  for (const key of ['number_bound', 'text', 'values', 'minimum', 'maximum'] as const) {
    const expected = key === 'values' && operand === 'values' ? each.values : unused[key]
    const free = key === operand && key !== 'values'
    hold(into(at, key), free || isDeepStrictEqual(sent[key], expected), 'is as the kind of the rule wants it')
  }
}

const member = exact({
  property: text,
  errors_path: text,
  item_model: is('ResponseError'),
  code_property: is('rule'),
  message_property: is('message'),
})
export const ruleGroups = distinct(
  list(exact({ model: text, valid: is('valid'), member_count: integer(), members: list(member) })),
  (each) => each.model,
  'form',
)

/** One group for each form, with a member for each of its fields. */
export function checkGroups(forms: Responses, groups: Of<typeof ruleGroups>, at: At): void {
  const models = Object.values(forms).map(({ model }) => model)
  const entries = groups.reduce((sum, { members }) => sum + 1 + members.length, 0)
  hold(
    at,
    entries <= rulesMax && bytesOf(groups) <= ruleBytesMax,
    `has at most ${rulesMax} groups and members of 8 MiB`,
  )
  hold(
    at,
    groups.length === models.length && groups.every((each) => models.includes(each.model)),
    'has one group for each form',
  )
  groups.forEach(({ model, member_count, members }, index) => {
    const here = into(at, index)
    const keys = Object.values(forms)
      .find((each) => each.model === model)
      ?.fields.map(({ key }) => key)
    hold(into(here, 'member_count'), member_count === members.length, 'counts the members')
    const follows = isDeepStrictEqual(
      members.map(({ property }) => property),
      keys ?? [],
    )
    hold(into(here, 'members'), follows, 'follow the fields of the form in their order')
    const led = members.every(({ property, errors_path }) => errors_path === `errors/${property}`)
    hold(into(here, 'members'), led, 'have the path of their errors')
  })
}

/** What the three may not hold anywhere. */
export function hasNull(value: unknown): boolean {
  if (Array.isArray(value)) return value.some(hasNull)
  return value === null || (isObject(value) && Object.values(value).some(hasNull))
}

function bytesOf(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value))
}
