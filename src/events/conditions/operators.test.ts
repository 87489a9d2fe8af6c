import assert from 'node:assert/strict'
import test from 'node:test'
import fc from '../../../test/harness/random.ts'
import type { Json } from '../types.ts'
import { compareText, type Operator, operandOf, operators, testOf } from './operators.ts'

const absent = undefined
const rows: [Operator, Json, (Json | undefined)[], (Json | undefined)[]][] = [
  ['eq', 'a', ['a'], [absent, 'A', 'a ', null, 0, ['a']]],
  ['eq', 5, [5], [absent, '5', 5.1, true]],
  ['eq', null, [null], [absent, 0, '', false]],
  ['neq', 5, ['5', null, 6, []], [5, absent]],
  ['in', ['a', 1, null], ['a', 1, null], [absent, '1', 'b', false]],
  ['not_in', ['a', 1], ['1', null, 'b'], ['a', 1, absent]],
  ['contains', 'bc', ['abcd', ['bc']], [absent, 'BC', ['abcd'], 5, null]],
  ['contains', 1, [[1, 2]], ['1', [2], 1]],
  ['not_contains', 'bc', ['xyz', 5, null, ['abcd']], [absent, 'abcd', ['bc']]],
  ['starts_with', 'ab', ['abc', 'ab'], [absent, 'cab', ['ab'], 5]],
  ['ends_with', 'bc', ['abc', 'bc'], [absent, 'bcd', null]],
  ['gt', 5, [5.1, 1e300], [absent, 5, '6', null, true]],
  ['gte', 5, [5, 6], [4.9, '5']],
  ['lt', 'b', ['a', ''], ['b', 'c', 0, absent]],
  ['lte', 'b', ['a', 'b'], ['ba', absent]],
  [
    'gt',
    '2026-03-01',
    ['2026-03-01T00:00:00.001Z', '2026-03-02'],
    ['2026-03-01T01:00:00+02:00', 'never', absent, 1e13],
  ],
  ['between', [1, 3], [1, 2, 3], [0, 4, '2', absent, null]],
  ['between', ['2026-01-01', '2026-01-31T00:00:00Z'], ['2026-01-31', '2026-01-01T00:00'], ['2026-01-31T00:01Z', 'x']],
  ['exists', null, [null, 0, '', []], [absent]],
  ['not_exists', null, [absent], [null, 0]],
]

for (const [op, value, passing, failing] of rows) {
  test(`${op} ${JSON.stringify(value)} passes and fails as the table says`, () => {
    const passes = testOf(op, value)
    for (const property of passing) assert.equal(passes(property), true, JSON.stringify(property))
    for (const property of failing) assert.equal(passes(property), false, JSON.stringify(property ?? 'absent'))
  })
}

test('an absent property passes not_exists and nothing else', () => {
  for (const op of operators) {
    const value = operandOf[op] === 'list' ? ['a'] : operandOf[op] === 'range' ? ['a', 'b'] : 'a'
    assert.equal(testOf(op, value)(undefined), op === 'not_exists')
  }
})

test('texts are ordered as their UTF-8 is', () => {
  const text = fc.string({ unit: fc.constantFrom('a', 'é', '\ud7ff', '\ue000', '\uffff', '🍋'), maxLength: 4 })
  fc.assert(
    fc.property(text, text, (a, b) => {
      assert.equal(Math.sign(compareText(a, b)), Buffer.compare(Buffer.from(a), Buffer.from(b)))
    }),
  )
})
