import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from '../harness/random.ts'
import { parseStrict } from './strict-json.ts'

const read = (text: string) => parseStrict(Buffer.from(text))
const nested = (depth: number) => `${'['.repeat(depth)}${']'.repeat(depth)}`

describe('strict JSON is read', () => {
  test('as JSON.parse reads it, whatever it is', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 6 }), fc.constantFrom(undefined, 1, '\t'), (value, space) => {
        const text = JSON.stringify(value, null, space)
        assert.deepEqual(read(text), JSON.parse(text))
      }),
      { numRuns: 300 },
    )
  })

  test('with keys of any name as own properties', () => {
    assert.deepEqual(Object.keys(read('{"__proto__":1,"constructor":2}') as object), ['__proto__', 'constructor'])
  })

  test('with composed and decomposed letters told apart', () => {
    assert.equal(Object.keys(read('{"\u00e9":1,"e\u0301":2}') as object).length, 2)
  })

  test('down to 64 arrays and objects, and no deeper', () => {
    assert.ok(read(nested(64)))
    assert.throws(() => read(nested(65)), /more than 64/)
    assert.throws(() => read('['.repeat(1_000_000)), /more than 64/)
  })

  test('with text of megabytes', () => {
    const text = 'x\\n'.repeat(2_000_000)
    assert.equal((read(`"${text}"`) as string).length, 4_000_000)
  })
})

describe('strict JSON is not', () => {
  const refused = {
    'a key twice': '{"a":1,"b":2,"a":3}',
    'a key twice, once escaped': '{"a":1,"\\u0061":2}',
    'anything after the root': '{} {}',
    'a number that is not finite': '[1e400]',
    'a number below all': '-1e999',
    nothing: '',
    'a comma at the end': '[1,]',
    'a comma at the end of an object': '{"a":1,}',
    'a comma alone': '[,]',
    'two values without comma': '[1 2]',
    'a key without quotes': '{a:1}',
    'a key without value': '{"a"}',
    'an open array': '[1',
    'an open text': '"abc',
    'a control character in a text': '"a\nb"',
    'an unknown escape': '"\\x"',
    'a number with a leading zero': '01',
    'a number with a plus': '+1',
    NaN: 'NaN',
    'another white space': '\u00a01',
  }
  for (const [title, text] of Object.entries(refused)) test(title, () => assert.throws(() => read(text)))

  test('bytes that are no UTF-8, or begin with a byte order mark', () => {
    for (const bytes of ['22ff22', '22c0af22', '22eda08022', 'efbbbf7b7d']) {
      assert.throws(() => parseStrict(Buffer.from(bytes, 'hex')))
    }
  })
})
