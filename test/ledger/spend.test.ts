import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { archiveFeature, publishFeature, updateFeature } from '../../src/entitlements/index.ts'
import { must } from '../../src/kernel/assert.ts'
import { Refusal } from '../../src/kernel/errors.ts'
import { randomText } from '../../src/kernel/ids.ts'
import { type Scope, touchCatalogue } from '../../src/tenancy/index.ts'
import { type Command, findings, openLedger, type Spender, totals, untilAnswered } from './world.ts'

const ledger = await openLedger()
after(() => ledger[Symbol.asyncDispose]())
const { pool } = ledger
const [one, two, three] = await Promise.all([ledger.spender(), ledger.spender(), ledger.spender()])
after(async () => {
  for (const spender of [one, two, three]) await spender[Symbol.asyncDispose]()
})
const all = [one, two, three]

/** A customer `u` with one grant of `exports`. */
async function customerWith(allowance: number) {
  const scope = await ledger.scope()
  const exports = await ledger.feature(scope)
  const customerId = await ledger.customer(scope, 'u')
  await ledger.grant(scope, customerId, exports, allowance)
  return { scope, exports, customerId }
}

const isUnavailable = (error: unknown) =>
  error instanceof Refusal && error.code === 'billing_unavailable' && (error.detail.retryAfterS ?? 0) >= 1

for (const [name, spenders] of Object.entries({ 'one process': [one], 'several processes': all })) {
  test(`of N parallel spends of equal size on one balance min(N, floor(balance / size)) are accepted, in ${name}`, async () => {
    const sizes = [
      [200, 5, 1],
      [150, 100, 3],
      [30, 100, 3],
      [60, 0, 1],
    ] as const
    for (const [n, balance, size] of sizes) {
      const { scope } = await customerWith(balance)
      const answers = await Promise.all(
        Array.from({ length: n }, (_, i) =>
          untilAnswered(must(spenders[i % spenders.length], 'some').consume, {
            scope,
            distinctId: 'u',
            quantity: size,
          }),
        ),
      )
      const accepted = answers.filter((answer) => answer.accepted)
      assert.equal(accepted.length, Math.min(n, Math.floor(balance / size)))
      const balances = accepted.map((answer) => answer.balance).toSorted((a, b) => Number(b) - Number(a))
      assert.deepEqual(
        balances,
        accepted.map((_, i) => balance - (i + 1) * size),
        'each took units of its own',
      )
      for (const { accepted: was, code, balance: left } of answers) {
        if (!was) assert.deepEqual([code, left], ['insufficient_balance', balance % size])
      }
      const spent = BigInt(accepted.length * size)
      assert.deepEqual(await totals(pool, scope), { drawn: spent, left: BigInt(balance) - spent, used: spent })
      assert.deepEqual(await findings(pool, scope), [])
    }
  })
}

test('of any number of copies of one operation, sent to several processes at once, one has an effect and the others replay it', async () => {
  const { scope } = await customerWith(1000)
  for (let round = 0; round < 15; round++) {
    const operationId = `op ${round}`
    const copies = Array.from({ length: 12 }, (_, i) =>
      untilAnswered(must(all[i % 3], 'three').consume, { scope, distinctId: 'u', quantity: 2, operationId }),
    )
    const answers = await Promise.all(copies)
    assert.equal(answers.filter(({ replay }) => !replay).length, 1)
    const [first, ...others] = answers.map((answer) => ({ ...answer, replay: false }))
    for (const other of others) assert.deepEqual(other, first)
    assert.equal(first?.balance, 1000 - 2 * (round + 1))
  }
  assert.deepEqual(await totals(pool, scope), { drawn: 30n, left: 970n, used: 30n })
})

test('of one operation with two inputs, sent to several processes at once, one is decided and the other is a conflict without effect', async () => {
  const { scope } = await customerWith(1000)
  let spent = 0
  for (let round = 0; round < 15; round++) {
    const answers = await Promise.all(
      Array.from({ length: 8 }, async (_, i) => {
        const command = { scope, distinctId: 'u', quantity: 1 + (i % 2), operationId: `op ${round}` }
        const answer = await untilAnswered(must(all[i % 3], 'three').consume, command).catch(
          (error: Refusal) => error.code,
        )
        return [command.quantity, answer] as const
      }),
    )
    const decided = answers.flatMap(([quantity, answer]) => (typeof answer === 'string' ? [] : [{ quantity, answer }]))
    assert.equal(new Set(decided.map(({ quantity }) => quantity)).size, 1)
    assert.equal(decided.filter(({ answer }) => !answer.replay).length, 1)
    assert.ok(answers.every(([, answer]) => typeof answer !== 'string' || answer === 'operation_conflict'))
    spent += decided[0]?.quantity ?? 0
  }
  assert.equal((await totals(pool, scope)).drawn, BigInt(spent))
})

test('spends through several processes, amid grants, merges and catalogue changes, lose no unit and spend none twice', async () => {
  const scope = await ledger.scope()
  const exports = await ledger.feature(scope)
  const credits = await ledger.feature(scope, 'credits', {
    type: 'creditSystem',
    creditCosts: [{ feature: 'exports', cost: 2 }],
  })
  const people = await Promise.all(
    Array.from({ length: 8 }, async (_, i) => ({ id: await ledger.customer(scope, `p${i}`), distinctId: `p${i}` })),
  )
  for (const { id } of people) {
    await ledger.grant(scope, id, exports, 100)
    await ledger.grant(scope, id, credits, 160)
  }
  let granted = people.length * 100
  const credited = people.length * 160

  const storm = Array.from({ length: 1500 }, (_, i) =>
    untilAnswered(must(all[i % 3], 'three').consume, {
      scope,
      distinctId: must(people[(i * 7) % people.length], 'eight').distinctId,
      quantity: 1 + (i % 3),
    }),
  )
  const changes = (async () => {
    for (const [i, { id }] of people.entries()) {
      await ledger.grant(scope, id, exports, 25)
      granted += 25
      // Half of them join the first one, which every id of theirs names from then on.
      if (i % 2 === 1) await ledger.merge(scope, id, must(people[0], 'eight').id)
      await pool.transaction(async (tx) => {
        // Credits pay for exports in one catalogue and not in the next.
        if (i % 3 === 0) await updateFeature(tx, [scope], 'exports', { name: `Exports ${i}` })
        else if (i % 3 === 1) await archiveFeature(tx, [scope], 'credits')
        else await publishFeature(tx, [scope], 'credits')
        await touchCatalogue(tx, scope.scopeId)
      })
    }
  })()
  const answers = (await Promise.all([...storm, changes])).slice(0, -1) as Awaited<(typeof storm)[number]>[] // the storm's

  const spent = answers.reduce((sum, { accepted }, i) => sum + (accepted ? 1 + (i % 3) : 0), 0)
  const { used, left, drawn } = await totals(pool, scope)
  assert.equal(used, BigInt(spent))
  assert.equal(left + drawn, BigInt(granted + credited), 'no unit came or went')
  assert.deepEqual(await findings(pool, scope), [])

  // What is left can be spent to the last unit, and not one more.
  await pool.transaction(async (tx) => {
    await publishFeature(tx, [scope], 'credits')
    await touchCatalogue(tx, scope.scopeId)
  })
  let rest = 0
  for (const { distinctId } of people) {
    const { code, balance } = await one.consume({ scope, distinctId, quantity: 10_000 })
    assert.equal(code, 'insufficient_balance')
    const quantity = Number(balance)
    if (quantity === 0) continue
    assert.equal((await two.consume({ scope, distinctId, quantity: quantity + 1 })).code, 'insufficient_balance')
    assert.deepEqual((await three.consume({ scope, distinctId, quantity })).balance, 0)
    rest += quantity
  }
  assert.equal(spent + rest, granted + credited / 2)
  assert.deepEqual(await totals(pool, scope), {
    used: BigInt(spent + rest),
    left: 0n,
    drawn: BigInt(granted + credited),
  })
})

test('a merge in the middle of spends conserves units and counters, and an operation replays under either id', async () => {
  const scope = await ledger.scope()
  const exports = await ledger.feature(scope)
  const [a, b] = [await ledger.customer(scope, 'a'), await ledger.customer(scope, 'b')]
  await ledger.grant(scope, a, exports, 100)
  await ledger.grant(scope, b, exports, 100)
  const operations = Array.from({ length: 120 }, (_, i) => ({ operationId: `op ${i}`, distinctId: i % 2 ? 'a' : 'b' }))
  const spends = operations.map((operation, i) =>
    untilAnswered(must(all[i % 3], 'three').consume, { scope, quantity: 2, ...operation }),
  )
  await Promise.race(spends)
  await ledger.merge(scope, b, a)
  const answers = await Promise.all(spends)
  const accepted = answers.filter((answer) => answer.accepted).length
  const { drawn, left, used } = await totals(pool, scope)
  assert.deepEqual(
    { drawn, left, used },
    { drawn: BigInt(accepted * 2), left: BigInt(200 - accepted * 2), used: drawn },
  )
  for (const [i, { operationId }] of operations.entries()) {
    for (const distinctId of ['a', 'b']) {
      const again = await must(all[i % 3], 'three').consume({ scope, quantity: 2, operationId, distinctId })
      assert.deepEqual(again, { ...answers[i], replay: true })
    }
  }
})

test('while a foreign session holds an account its commands end in 503 in time, and all others are answered meanwhile', async () => {
  const scope = await ledger.scope()
  const exports = await ledger.feature(scope)
  const ids = Array.from({ length: 30 }, (_, i) => `c${i}`)
  for (const id of ids) await ledger.grant(scope, await ledger.customer(scope, id), exports, 1000)
  const [blocked = '', ...free] = ids
  await one.consume({ scope, distinctId: blocked, quantity: 1 })
  const answerMs: number[] = []

  await pool.connected(async (foreign) => {
    await foreign.query('begin')
    await foreign.query(
      `select id from account where customer_id = (
         select customer_id from customer_alias where scope_id = $1 and distinct_id = $2) for update`,
      [scope.scopeId, blocked],
    )
    const refused: number[] = []
    let over = false
    const stubborn = Array.from({ length: 10 }, async () => {
      while (refused.length < 20) {
        const began = performance.now()
        await assert.rejects(one.consume({ scope, distinctId: blocked, quantity: 1 }), isUnavailable)
        refused.push(performance.now() - began)
      }
      over = true
    })
    const others = free.map(async (distinctId) => {
      while (!over) {
        const began = performance.now()
        assert.equal((await one.consume({ scope, distinctId, quantity: 1 })).code, 'consumed')
        answerMs.push(performance.now() - began)
        await sleep(5)
      }
    })
    await Promise.all([...stubborn, ...others])
    await foreign.query('rollback')
    assert.ok(Math.max(...refused) < 4000, `refused after ${Math.max(...refused)} ms`)
  })
  assert.ok(answerMs.length > 200, `only ${answerMs.length} answers`)
  assert.ok(Math.max(...answerMs) < 900, `answered after ${Math.max(...answerMs)} ms`)
  const answer = await one.consume({ scope, distinctId: blocked, quantity: 1 })
  assert.equal(answer.balance, 998, 'nothing of the refused was spent')
})

test('commands of an account that was held for a moment are decided together, in the order they came', async () => {
  const { scope } = await customerWith(5)
  await one.consume({ scope, distinctId: 'u', quantity: 1 })
  await pool.connected(async (foreign) => {
    await foreign.query('begin')
    await foreign.query('select id from account where scope_id = $1 for update', [scope.scopeId])
    const spends = Array.from({ length: 6 }, (_, i) =>
      one.consume({ scope, distinctId: 'u', quantity: 1, operationId: `op ${i}` }),
    )
    const twin = one.consume({ scope, distinctId: 'u', quantity: 1, operationId: 'op 0' })
    await sleep(100)
    await foreign.query('commit')
    const answers = await Promise.all(spends)
    assert.deepEqual(
      answers.map(({ code, balance }) => [code, balance]),
      [
        ['consumed', 3],
        ['consumed', 2],
        ['consumed', 1],
        ['consumed', 0],
        ['insufficient_balance', 0],
        ['insufficient_balance', 0],
      ],
    )
    assert.deepEqual(await twin, { ...answers[0], replay: true })
  })
})

test('connections that PostgreSQL ends at random moments cost retries, and no unit', async () => {
  const scope = await ledger.scope()
  const exports = await ledger.feature(scope)
  const ids = Array.from({ length: 5 }, (_, i) => `c${i}`)
  for (const id of ids) await ledger.grant(scope, await ledger.customer(scope, id), exports, 600)
  const terminated = { count: 0 }
  let over = false
  const killer = (async () => {
    while (!over) {
      const rows = await pool.query(
        `select pg_terminate_backend(pid) from pg_stat_activity
         where datname = current_database() and application_name in ('turnpike usage', 'turnpike held up') order by random() limit 1`,
      )
      terminated.count += rows.length
      await sleep(3 + Math.random() * 10)
    }
  })()
  const answers = await Promise.all(
    Array.from({ length: 40 }, async (_, client) => {
      const mine: { quantity: number; accepted: boolean }[] = []
      for (let turn = 0; turn < 60; turn++) {
        const command = spendOf(scope, must(ids[(client + turn) % ids.length], 'five'), 1 + (turn % 3))
        const answer = await untilAnswered(must(all[turn % 3], 'three').consume, command)
        mine.push({ quantity: command.quantity, accepted: answer.accepted })
      }
      return mine
    }),
  )
  over = true
  await killer
  assert.ok(terminated.count > 10, `only ${terminated.count} ended`)
  const spent = answers.flat().reduce((sum, { quantity, accepted }) => sum + (accepted ? quantity : 0), 0)
  assert.deepEqual(await totals(pool, scope), { drawn: BigInt(spent), left: BigInt(3000 - spent), used: BigInt(spent) })
  assert.deepEqual(await findings(pool, scope), [])
})

function spendOf(scope: Scope, distinctId: string, quantity: number): Command & { operationId: string } {
  return { scope, distinctId, quantity, operationId: randomText(16) }
}

test('a full queue is 503 before any work, for the one customer or for all, and what was taken is answered', async () => {
  const { scope } = await customerWith(10_000)
  await using spender: Spender = await ledger.spender()
  const spends = Array.from({ length: 1200 }, () => spender.consume({ scope, distinctId: 'u', quantity: 1 }))
  const settled = await Promise.allSettled(spends)
  const refused = settled.flatMap((result) => (result.status === 'rejected' ? [result.reason as unknown] : []))
  assert.equal(refused.length, 200)
  assert.ok(refused.every(isUnavailable))
  assert.equal((await totals(pool, scope)).drawn, 1000n)

  const many = Array.from({ length: 20_500 }, (_, i) =>
    spender.consume({ scope, distinctId: `nobody ${i}`, quantity: 1 }),
  )
  const outcomes = await Promise.allSettled(many)
  const full = outcomes.filter((result) => result.status === 'rejected')
  assert.ok(full.length >= 500 && full.every(({ reason }) => isUnavailable(reason)), `${full.length} were refused`)
  assert.equal((await spender.consume({ scope, distinctId: 'u', quantity: 1 })).code, 'consumed')
})

test('while one account is saturated the commands of another one are answered as ever', async () => {
  const scope = await ledger.scope()
  const exports = await ledger.feature(scope)
  for (const id of ['hot', 'calm']) await ledger.grant(scope, await ledger.customer(scope, id), exports, 1_000_000)
  await one.consume(spendOf(scope, 'hot', 1))
  let over = false
  // As many as may wait for one account, all the time, and some more that are refused.
  const storm = Array.from({ length: 1050 }, async () => {
    while (!over) {
      await one.consume(spendOf(scope, 'hot', 1)).catch((error: unknown) => {
        assert.ok(isUnavailable(error))
        return sleep(20)
      })
    }
  })
  const answerMs: number[] = []
  for (let n = 0; n < 200; n++) {
    const began = performance.now()
    assert.equal((await one.consume(spendOf(scope, 'calm', 1))).code, 'consumed')
    answerMs.push(performance.now() - began)
  }
  over = true
  await Promise.all(storm)
  const p99 = answerMs.toSorted((a, b) => a - b)[197] ?? 0
  // Half of what a command may wait: a queue behind the other account would take it all.
  assert.ok(p99 < 1000, `99 % were answered within ${p99} ms`)
  const { drawn, used } = await totals(pool, scope)
  assert.equal(drawn, used)
  assert.deepEqual(await findings(pool, scope), [])
})
