import assert from 'node:assert/strict'
import { existsSync, mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import test, { after } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Pool } from '../../src/db/pool.ts'
import { type Finding, verifyLedger } from '../../src/entitlements/index.ts'
import { laneLag } from '../../src/events/index.ts'
import { must } from '../../src/kernel/assert.ts'
import { removeFolder, temporaryFolder } from '../harness/server.ts'
import { call, postgresOf, readFirstRun, runTurnpike } from '../harness/turnpike.ts'
import { type Acknowledged, commandOf, load, type Spend, type Target } from './load.ts'

const folder = await temporaryFolder()
after(() => removeFolder(folder))
const dataDir = join(folder, 'data')

/** Small enough that many spends are denied. */
const allowance = 120
const customers = Array.from({ length: 6 }, (_, i) => `spender ${i}`)
const amount = { clients: 16, requestsPerClient: 40 }

test('kill -9 of Node, of PostgreSQL and of both under load loses and doubles no acknowledged event and no acknowledged unit', async (t) => {
  let turnpike = runTurnpike({ dataDir })
  await using stack = new AsyncDisposableStack()
  stack.defer(() => turnpike[Symbol.asyncDispose]())
  const target: Target = { url: await turnpike.url, key: '' }
  const { secret_key, apps } = await readFirstRun(dataDir)
  target.key = must(apps?.[0], 'the demo has apps').keys.test
  await prepare(target.url, secret_key)

  /** Kills when a third of the load is acknowledged, and again when two thirds are. */
  async function underLoad(kill: () => Promise<void>): Promise<Acknowledged> {
    const total = amount.clients * amount.requestsPerClient
    const killed: Promise<void>[] = []
    const onProgress = (acknowledged: number) => {
      if (acknowledged === Math.floor((total * (killed.length + 1)) / 3) && killed.length < 2) killed.push(kill())
    }
    const done = await load({ target, customers, ...amount, onProgress })
    await Promise.all(killed)
    assert.equal(killed.length, 2)
    assert.ok(done.setbacks.broken + done.setbacks.unavailable > 0, 'nobody noticed')
    return done
  }

  async function restart(): Promise<void> {
    turnpike = runTurnpike({ dataDir })
    target.url = await turnpike.url
  }

  const rounds: Acknowledged[] = []
  await t.test('of PostgreSQL alone: the process heals by itself', async () => {
    const { processId } = turnpike
    rounds.push(
      await underLoad(async () => process.kill((await postgresOf(dataDir)).processId, 'SIGKILL') && undefined),
    )
    assert.equal(turnpike.processId, processId)
    assert.equal(turnpike.process.exitCode, null)
    await until(async () => (await call(target.url, '/ready')).status === 200)
  })
  await t.test('of Node alone: the next start takes the database over', async () => {
    const { processId } = await postgresOf(dataDir)
    rounds.push(
      await underLoad(async () => {
        turnpike.process.kill('SIGKILL')
        await turnpike.ended
        await restart()
      }),
    )
    assert.equal((await postgresOf(dataDir)).processId, processId)
  })
  await t.test('of both: the next start recovers', async () => {
    rounds.push(
      await underLoad(async () => {
        const { processId } = await postgresOf(dataDir)
        turnpike.process.kill('SIGKILL')
        process.kill(processId, 'SIGKILL')
        await turnpike.ended
        await restart()
      }),
    )
  })

  await using pool = new Pool((await postgresOf(dataDir)).url, { name: 'test', max: 1 })
  await until(async () => (await laneLag(pool)).rows === 0)
  const read = async (distinctId: string) => {
    const headers = { authorization: `Bearer ${secret_key}`, 'x-service-env': 'test' }
    const { body } = await call(
      target.url,
      `/v1/customers/by_distinct_id/${encodeURIComponent(distinctId)}`,
      undefined,
      headers,
    )
    return body
  }

  await t.test(
    'every acknowledged event is stored once, none that was not sent, and increments are exact',
    async () => {
      const stored = await pool.query<{ uuid: string; distinct_id: string }>(
        `select uuid, distinct_id from event where event = 'counted'`,
      )
      const kept = new Map(stored.map(({ uuid, distinct_id }) => [uuid, distinct_id]))
      assert.equal(kept.size, stored.length, 'stored twice')
      const sent = new Map(rounds.flatMap(({ events, once }) => [...events, ...once.sent]))
      const acknowledged = rounds.flatMap(({ events, once }) => [...events.keys(), ...once.acknowledged])
      assert.deepEqual(
        acknowledged.filter((uuid) => !kept.has(uuid)),
        [],
      )
      assert.deepEqual(
        [...kept.keys()].filter((uuid) => !sent.has(uuid)),
        [],
      )
      for (const distinctId of new Set(kept.values())) {
        const count = [...kept.values()].filter((id) => id === distinctId).length
        assert.deepEqual((await read(distinctId)).properties, { n: count }, distinctId)
      }
    },
  )

  await t.test('every decision a caller got is the one that is saved, and the ledger adds up to them', async () => {
    const spends = rounds.flatMap((round) => round.spends)
    const accepted = spends.filter(({ answer }) => answer.accepted === true)
    assert.ok(accepted.length > 50 && accepted.length < spends.length)
    for (const spend of spends) {
      const { body, status } = await call(target.url, '/feature/consume', { apiKey: target.key, ...commandOf(spend) })
      assert.deepEqual([status, body], [200, { ...spend.answer, idempotentReplay: true }])
    }
    const sums = await pool.query<{
      distinct_id: string
      used: bigint
      drawn: bigint
      remaining: bigint
      entered: bigint
    }>(
      `select c.distinct_id, a.used_total as used,
         (select coalesce(-sum(delta), 0) from entry where account_id = a.id and kind = 'draw')::bigint as drawn,
         (select sum(remaining) from ledger_grant where account_id = a.id)::bigint as remaining,
         (select sum(delta) from entry where account_id = a.id)::bigint as entered
       from account a
       join customer_alias c on c.scope_id = a.scope_id and c.customer_id = a.customer_id
       where c.distinct_id like 'spender %'`,
    )
    assert.equal(sums.length, customers.length)
    for (const { distinct_id, used, drawn, remaining, entered } of sums) {
      const units = unitsOf(accepted.filter(({ customer }) => customer === distinct_id))
      assert.deepEqual(
        { used, drawn, remaining, entered },
        {
          used: units,
          drawn: units,
          remaining: BigInt(allowance) - units,
          entered: BigInt(allowance) - units,
        },
      )
    }
    const [operations] = await pool.query<{ count: bigint }>('select count(*) from operation')
    assert.equal(operations?.count, BigInt(spends.length), 'somebody else’s operation was saved')
    const findings: Finding[] = []
    await verifyLedger(pool, { onFinding: (finding) => findings.push(finding) })
    assert.deepEqual(findings, [])
  })
})

test('a first start killed at one step after the other is taken up by the next, down to keys that work', async () => {
  const early = join(folder, 'early')
  mkdirSync(early)
  const steps: ((out: string) => boolean)[] = [
    () => readdirSync(early).some((name) => name.startsWith('postgres.new-')),
    () => existsSync(join(early, 'postgres/server.log')),
    (out) => out.includes('embedded PostgreSQL in'),
    () => existsSync(join(early, 'master.key')),
    () => existsSync(join(early, 'first-run.json')),
  ]
  for (const [i, reached] of steps.entries()) {
    const turnpike = runTurnpike({ dataDir: early })
    while (!reached(turnpike.out())) await sleep(1)
    turnpike.process.kill('SIGKILL')
    if (i % 2 === 1) {
      const { processId } = await postgresOf(early)
      if (processId > 0) process.kill(processId, 'SIGKILL')
    }
    await turnpike.ended
  }
  await using turnpike = runTurnpike({ dataDir: early })
  const url = await turnpike.url
  const { secret_key, apps } = await readFirstRun(early)
  const query = { apiKey: apps?.[0]?.keys.test, customerId: 'demo-user', featureId: 'exports' }
  assert.equal((await call(url, '/entitled', query)).body.balance, 100)
  const { status } = await call(url, '/v1/projects', undefined, { authorization: `Bearer ${secret_key}` })
  assert.equal(status, 200)
})

/** Every spend took its own units: none that another one took, and in the end all that are missing. */
function unitsOf(accepted: Spend[]): bigint {
  const taken = new Set<number>()
  let spent = 0
  for (const { quantity, mode, answer } of accepted) {
    const left = Number(answer.balance)
    spent = Math.max(spent, allowance - left)
    if (mode === 'set_usage') continue
    for (let unit = left; unit < left + quantity; unit++) {
      assert.ok(!taken.has(unit), 'a unit was spent twice')
      taken.add(unit)
    }
  }
  return BigInt(spent)
}

async function prepare(url: string, secretKey: string): Promise<void> {
  const headers = { authorization: `Bearer ${secretKey}`, 'x-service-env': 'test' }
  for (const distinctId of customers) {
    const { body } = await call(url, '/v1/customers', { distinct_id: distinctId }, headers)
    const grant = await call(url, `/v1/customers/${String(body.id)}/grants`, { feature: 'exports', allowance }, headers)
    assert.equal(grant.status, 201)
  }
}

async function until(condition: () => Promise<boolean>): Promise<void> {
  while (!(await condition())) await sleep(20)
}
