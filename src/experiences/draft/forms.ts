import { isDeepStrictEqual } from 'node:util'
import { formRuleBytesMax, formRulesMax } from '../../kernel/limits.ts'
import { type Findings, under } from './findings.ts'
import {
  isObject,
  lazy,
  list,
  map,
  number,
  object,
  type Shape,
  type Shaped,
  tagged,
  text,
  that,
  whole,
  word,
} from './shape.ts'
import { formName } from './values.ts'

/** Forms with their rules, and what screens keep in variables: as descriptors carry them, made by the screen exporter. */

const anyText = that<string>('text', (one) => typeof one === 'string')
const naturally = whole(0, Number.MAX_SAFE_INTEGER)
const texts = list(anyText, { max: 4096 })
const many = { multiple: word(true) }

const state: Shape<Record<string, { type: string }>> = map(
  tagged('type', {
    ...{ string: object({}), number: object({}), boolean: object({}), color: object({}), date: object({}) },
    ...{ trigger: object({}), image: object({}) },
    enum: object({ values: texts }, many),
    list: object({ items: lazy(() => state) }),
  }),
  { key: formName, max: 4096 },
)
export const stateShape = state

const rule = object({
  ...{
    model: anyText,
    property: anyText,
    kind: whole(1, 12),
    mode: whole(0, 1),
    number_bound: number(),
    text: anyText,
  },
  ...{ values: texts, value_count: naturally, picked_property: anyText, bound_flags: whole(0, 2) },
  ...{ minimum: naturally, maximum: naturally, code: anyText, message: text({ max: 65_536 }) },
})
const reserved = ['valid', 'errors', 'saving', 'saved', 'saveError']
const field = object(
  {
    key: that<string>(
      `a name that is not one of ${reserved.join(', ')}`,
      (one) => typeof one === 'string' && isName(one) && !reserved.includes(one),
    ),
    ...{
      label: anyText,
      type: word('string', 'number', 'boolean', 'enum', 'date'),
      rules: list(rule, { max: formRulesMax }),
    },
  },
  { values: texts, ...many },
)
export const formsShape = map(object({ title: anyText, model: anyText, fields: list(field, { max: 4096 }) }), {
  key: formName,
  max: formRulesMax,
})
const member = object({
  ...{ property: anyText, errors_path: anyText, item_model: word('ResponseError') },
  ...{ code_property: word('rule'), message_property: word('message') },
})
export const groupsShape = list(
  object({
    model: anyText,
    valid: word('valid'),
    member_count: naturally,
    members: list(member, { max: formRulesMax }),
  }),
  { max: formRulesMax },
)
export type Forms = Shaped<typeof formsShape>
export type Groups = Shaped<typeof groupsShape>
type Field = Shaped<typeof field>
type Rule = Shaped<typeof rule>

function isName(one: string): boolean {
  return /^(?!(?:true|false|null)$)[A-Za-z_][A-Za-z0-9_]*$/.test(one)
}

interface Kind {
  kind: number
  mode: number
  codes: string[]
  fits: (of: Field) => boolean
  operand?: 'number_bound' | 'text' | 'values' | 'minimum' | 'maximum'
  flags?: number
}

const of = (type: Field['type']) => (one: Field) => one.type === type
const isMany = (one: Field) => one.type === 'enum' && one.multiple === true
const kinds: Kind[] = [
  { kind: 1, mode: 0, codes: ['min'], fits: of('number'), operand: 'number_bound' },
  { kind: 2, mode: 1, codes: ['max'], fits: of('number'), operand: 'number_bound' },
  { kind: 3, mode: 0, codes: ['min'], fits: of('date'), operand: 'text' },
  { kind: 4, mode: 1, codes: ['max'], fits: of('date'), operand: 'text' },
  { kind: 12, mode: 0, codes: ['date'], fits: of('date') },
  { kind: 5, mode: 1, codes: ['values'], fits: of('enum'), operand: 'values' },
  { kind: 7, mode: 0, codes: ['minItems'], fits: isMany, operand: 'minimum', flags: 1 },
  { kind: 7, mode: 1, codes: ['maxItems'], fits: isMany, operand: 'maximum', flags: 2 },
  { kind: 8, mode: 0, codes: ['minLength'], fits: of('string'), operand: 'minimum', flags: 1 },
  { kind: 8, mode: 1, codes: ['maxLength'], fits: of('string'), operand: 'maximum', flags: 2 },
  { kind: 9, mode: 0, codes: ['format', 'pattern'], fits: of('string'), operand: 'text' },
  { kind: 11, mode: 0, codes: ['format'], fits: of('string') },
  { kind: 10, mode: 0, codes: ['required'], fits: () => true },
]

interface Parts {
  state: unknown
  forms: Forms
  groups: Groups
}

/** What clients ask of forms, groups and state beyond their shapes. */
export function checkForms(
  { state: kept, forms, groups }: Parts,
  at: { state: string; forms: string; groups: string },
  findings: Findings,
): void {
  const wrong = (path: string, message: string) => findings.add(path, 'value_invalid', message)
  checkState(kept, at.state, findings)
  for (const [name, form] of Object.entries(forms)) {
    const path = under(at.forms, name)
    if (form.model !== `Responses:${name}`) wrong(under(path, 'model'), `This must be "Responses:${name}".`)
    const keys = new Set<string>()
    for (const [i, one] of form.fields.entries()) {
      const here = under(path, 'fields', i)
      if (keys.has(one.key)) wrong(under(here, 'key'), `Field "${one.key}" is there twice.`)
      keys.add(one.key)
      if ((one.values !== undefined) !== (one.type === 'enum')) wrong(here, 'An enum, and nothing else, has values.')
      if (one.values && new Set(one.values).size !== one.values.length) wrong(here, 'Each value is there once.')
      if (one.multiple && one.type !== 'enum') wrong(here, 'Only an enum can be multiple.')
      for (const [n, each] of one.rules.entries()) {
        const why = whyNot(each, one, form.model)
        if (why !== undefined) wrong(under(here, 'rules', n), why)
      }
    }
  }
  checkGroups(forms, groups, at.groups, findings)
  const rules = Object.values(forms).flatMap(({ fields }) => fields.flatMap((one) => one.rules))
  const entries = groups.reduce((sum, { members }) => sum + 1 + members.length, 0)
  const limit = (path: string, count: number, things: string, max: number) => {
    if (count > max) findings.add(path, 'limit_exceeded', `${count} ${things}; at most ${max}.`)
  }
  limit(at.forms, rules.length, 'rules', formRulesMax)
  limit(at.forms, Buffer.byteLength(JSON.stringify(rules)), 'bytes of rules', formRuleBytesMax)
  limit(at.groups, entries, 'groups and members', formRulesMax)
  limit(at.groups, Buffer.byteLength(JSON.stringify(groups)), 'bytes of groups', formRuleBytesMax)
}

function whyNot(sent: Rule, one: Field, model: string): string | undefined {
  if (sent.model !== model || sent.property !== one.key)
    return 'A rule names its form as model and its field as property.'
  if (sent.value_count !== sent.values.length) return 'value_count must be the number of values.'
  const kind = kinds.find(
    ({ kind: no, mode, codes }) => no === sent.kind && mode === sent.mode && codes.includes(sent.code),
  )
  if (!kind?.fits(one))
    return `There is no rule of kind ${sent.kind}, mode ${sent.mode} and code "${sent.code}" for this field.`
  if (sent.bound_flags !== (kind.flags ?? 0)) return `bound_flags must be ${kind.flags ?? 0}.`
  const picked = kind.kind === 7 ? 'picked' : ''
  if (sent.picked_property !== picked) return `picked_property must be "${picked}".`
  const { operand } = kind
  const unused = { number_bound: 0, text: '', values: operand === 'values' ? one.values : [], minimum: 0, maximum: 0 }
  const odd = Object.entries(unused).find(
    ([key, value]) =>
      (key !== operand || key === 'values') && !isDeepStrictEqual(sent[key as keyof typeof unused], value),
  )
  return odd && `${odd[0]} must be ${JSON.stringify(odd[1])} in a rule of kind ${sent.kind}.`
}

/** One for each form, whose members follow the fields. */
function checkGroups(forms: Forms, groups: Groups, path: string, findings: Findings): void {
  const wrong = (at: string, message: string) => findings.add(at, 'value_invalid', message)
  const seen = new Set<string>()
  for (const [i, { model, member_count: count, members }] of groups.entries()) {
    const form = Object.values(forms).find((one) => one.model === model)
    if (!form || seen.has(model)) wrong(under(path, i), 'There is one group for each form.')
    seen.add(model)
    if (count !== members.length) wrong(under(path, i), 'member_count must be the number of members.')
    const follows = isDeepStrictEqual(
      members.map(({ property }) => property),
      form?.fields.map(({ key }) => key),
    )
    if (form && !follows) wrong(under(path, i), 'The members must follow the fields of the form.')
    if (members.some((one) => one.errors_path !== `errors/${one.property}`)) {
      wrong(under(path, i), 'errors_path must be "errors/" and the property.')
    }
  }
  if (groups.length !== Object.keys(forms).length) wrong(path, 'There is one group for each form.')
}

function checkState(kept: unknown, path: string, findings: Findings): void {
  for (const [name, one] of Object.entries(isObject(kept) ? kept : {})) {
    if (!isObject(one)) continue
    const { values, items } = one
    if (Array.isArray(values) && new Set(values).size !== values.length) {
      findings.add(under(path, name), 'value_invalid', 'Each value is there once.')
    }
    checkState(items, under(path, name, 'items'), findings)
  }
}
