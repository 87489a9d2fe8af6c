import type { Sample } from './publish.ts'

/** Every rule of a form. */
export function offerForms(): Sample {
  const unused = {
    number_bound: 0,
    text: '',
    values: [],
    value_count: 0,
    picked_property: '',
    bound_flags: 0,
    minimum: 0,
    maximum: 0,
  }
  const rule = (property: string, kind: number, mode: number, code: string, more: Sample = {}) => {
    return { model: 'Responses:contact', property, kind, mode, code, message: 'No.', ...unused, ...more }
  }
  const picked = { picked_property: 'picked' }
  const fields = [
    {
      key: 'age',
      label: 'Age',
      type: 'number',
      rules: [rule('age', 1, 0, 'min', { number_bound: 1 }), rule('age', 2, 1, 'max', { number_bound: 99.5 })],
    },
    {
      key: 'day',
      label: '',
      type: 'date',
      rules: [
        rule('day', 3, 0, 'min', { text: '2026-01-01' }),
        rule('day', 4, 1, 'max', { text: '2027-01-01' }),
        rule('day', 12, 0, 'date'),
      ],
    },
    {
      key: 'likes',
      label: 'Likes',
      type: 'enum',
      values: ['x', 'y'],
      multiple: true,
      rules: [
        rule('likes', 5, 1, 'values', { values: ['x', 'y'], value_count: 2 }),
        rule('likes', 7, 0, 'minItems', { bound_flags: 1, minimum: 1, ...picked }),
        rule('likes', 7, 1, 'maxItems', { bound_flags: 2, maximum: 2, ...picked }),
      ],
    },
    {
      key: 'name',
      label: 'Name',
      type: 'string',
      rules: [
        rule('name', 8, 0, 'minLength', { bound_flags: 1, minimum: 2 }),
        rule('name', 8, 1, 'maxLength', { bound_flags: 2, maximum: 20 }),
        rule('name', 9, 0, 'pattern', { text: '^a' }),
        rule('name', 11, 0, 'format'),
        rule('name', 10, 0, 'required'),
      ],
    },
    { key: 'ok', label: 'OK', type: 'boolean', rules: [] },
  ]
  const members = fields.map(({ key }) => {
    const paths = { property: key, errors_path: `errors/${key}` }
    return { ...paths, item_model: 'ResponseError', code_property: 'rule', message_property: 'message' }
  })
  return {
    responses: { contact: { title: 'Contact', model: 'Responses:contact', fields } },
    ruleGroups: [{ model: 'Responses:contact', valid: 'valid', member_count: members.length, members }],
  }
}
