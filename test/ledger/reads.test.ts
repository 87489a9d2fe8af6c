import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { systemClock as clock } from '../../src/kernel/clock.ts'
import { openLedger } from './world.ts'

const ledger = await openLedger()
after(() => ledger[Symbol.asyncDispose]())
const { pool } = ledger
const spender = await ledger.spender()
after(() => spender[Symbol.asyncDispose]())

/** Every row of every table with its place and who wrote or locked it last. */
async function bytes(): Promise<Record<string, string>> {
  const tables = await pool.query<{ name: string }>(
    `select relname as name from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace order by 1`,
  )
  const digests: Record<string, string> = {}
  for (const { name } of tables) {
    const [row] = await pool.query<{ digest: string }>(
      `select md5(coalesce(string_agg(concat_ws(' ', t.ctid, t.xmin, t.xmax, t.*::text), ',' order by t.ctid), '')) as digest
       from ${name} t`,
    )
    digests[name] = row?.digest ?? ''
  }
  return digests
}

test('any number of checks and profile reads leaves the tables byte-identical, also when resets are due', async () => {
  const scope = await ledger.scope()
  const exports = await ledger.feature(scope)
  const creditCosts = [{ feature: 'exports', cost: 2 }]
  const credits = await ledger.feature(scope, 'credits', { type: 'creditSystem', creditCosts })
  const customerId = await ledger.customer(scope, 'u')
  const startsAt = clock.now() - 400 * 24 * 3600_000
  await ledger.grant(scope, customerId, exports, 10, {
    interval: 'month',
    startsAt,
    rollover: { max: null, periods: 2 },
  })
  await ledger.grant(scope, customerId, exports, 3, { entityId: 'seat' })
  await ledger.grant(scope, customerId, credits, 50, { interval: 'day', startsAt })
  await spender.consume({ scope, distinctId: 'u', quantity: 4 })
  await pool.query(`update ledger_grant set period_no = period_no - 1 where cycle_unit is not null`)

  const before = await bytes()
  const balances = new Set<number | null>()
  for (let round = 0; round < 3; round++) {
    const asked = Array.from({ length: 60 }, async (_, i) => {
      const distinctId = i % 7 === 0 ? 'nobody' : 'u'
      const feature = i % 3 === 0 ? 'credits' : 'exports'
      const query = { scope, distinctId, feature, required: 1 + i, ...(i % 2 ? { entity: 'seat' } : {}) }
      balances.add((await spender.check(query)).balance)
      await spender.standing(i % 4 === 0 ? { scope, customerId } : { scope, distinctId })
    })
    await Promise.all(asked)
  }
  assert.ok(balances.size > 3)
  assert.deepEqual(await bytes(), before)

  // It is a fine instrument: one spend that is denied shows.
  await spender.consume({ scope, distinctId: 'u', quantity: 1_000_000 })
  const changed = Object.entries(await bytes()).flatMap(([name, digest]) => (digest === before[name] ? [] : [name]))
  assert.deepEqual(changed, ['account', 'operation'])
})
