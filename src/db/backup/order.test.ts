import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from '../../../test/harness/random.ts'
import { loadOrder } from './order.ts'

const tables = (...names: string[]) => names.map((name) => ({ name, columns: ['id'] }))

test('every table comes after those it refers to, and none is lost', () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.nat(9), fc.nat(9))), (pairs) => {
      // From the later to the earlier letter: no circle.
      const references = pairs.filter(([a, b]) => a >= b).map(([a, b]) => ({ from: `t${a}`, to: `t${b}` }))
      const given = tables(...Array.from({ length: 10 }, (_, n) => `t${9 - n}`))
      const order = loadOrder(given, references).map(({ name }) => name)
      assert.equal(new Set(order).size, 10)
      for (const { from, to } of references) if (from !== to) assert.ok(order.indexOf(to) < order.indexOf(from))
    }),
  )
})

test('a circle is a bug, and a table that is left out of the backup does not matter', () => {
  const circle = [
    { from: 'a', to: 'b' },
    { from: 'b', to: 'a' },
  ]
  assert.throws(() => loadOrder(tables('a', 'b'), circle), /in a circle: a, b/)
  assert.deepEqual(loadOrder(tables('a'), [{ from: 'a', to: 'elsewhere' }]), tables('a'))
})
