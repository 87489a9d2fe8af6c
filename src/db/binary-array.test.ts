import assert from 'node:assert/strict'
import test from 'node:test'
import { testDatabase } from '../../test/harness/database.ts'
import fc from '../../test/harness/random.ts'
import { bools, float8s, int4s, int8s, texts, uuids } from './binary-array.ts'

test('arrays in binary format arrive as they were sent, nulls and empty arrays included', async () => {
  await using database = await testDatabase()
  const storable = fc.string({ unit: 'binary' }).map((text) => text.replaceAll('\0', ''))
  const row = fc.record(
    {
      t: fc.option(storable),
      u: fc.uuid(),
      i: fc.integer(),
      b: fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
      f: fc.option(fc.double({ noNaN: true })),
      o: fc.boolean(),
    },
    { noNullPrototype: true },
  )
  await fc.assert(
    fc.asyncProperty(fc.array(row, { maxLength: 20 }), async (rows) => {
      const read = await database.pool.query(
        `select t, u, i, b, f, o
        from unnest($1::text[], $2::uuid[], $3::int[], $4::bigint[], $5::float8[], $6::boolean[])
          with ordinality as c (t, u, i, b, f, o, ord)
        order by ord`,
        [
          texts(rows.map((each) => each.t)),
          uuids(rows.map((each) => each.u.toUpperCase())),
          int4s(rows.map((each) => each.i)),
          int8s(rows.map((each) => each.b)),
          float8s(rows.map((each) => each.f)),
          bools(rows.map((each) => each.o)),
        ],
      )
      assert.deepEqual(
        read.map((each) => ({ ...each })),
        rows,
      )
    }),
    { numRuns: 100 },
  )
})
