import assert from 'node:assert/strict'
import { createHash, randomUUID } from 'node:crypto'
import { join } from 'node:path'
import test, { after } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Pool } from '../../src/db/pool.ts'
import { type Finding, verifyLedger } from '../../src/entitlements/index.ts'
import { ask, type Stage, setStage } from '../../store-sim/scenarios/stage.ts'
import { removeFolder, temporaryFolder } from '../harness/server.ts'
import { call, freePort, postgresOf, readFirstRun, runTurnpike } from '../harness/turnpike.ts'
import { type Body, openSim } from '../store-sim/sim.ts'

const rounds = Number(process.env.CRASH_ROUNDS ?? 5)
const seed = process.env.CRASH_SEED ?? 'a purchase is paid once'
const folder = await temporaryFolder()
after(() => removeFolder(folder))
const dataDir = join(folder, 'data')

/** What one customer of a round does, until it has the final answer. */
interface Deal {
  stage: Stage
  who: string
  held: Body
  evidence: object
  buys: 'pass' | 'pack'
  operationId: string
  answers: Body[]
}

const packUnits = 100
const spends = 30

test('kill -9 between any steps of attach, acknowledge and spend: a retry ends in the same state, nothing is given twice, and nothing is paid and missing', async (t) => {
  const port = await freePort()
  const settings = { PORT: String(port) }
  let turnpike = runTurnpike({ dataDir, settings })
  await using stack = new AsyncDisposableStack()
  stack.defer(() => turnpike[Symbol.asyncDispose]())
  const simulator = stack.use(await openSim({ clock: 'real', seed }))
  const url = await turnpike.url
  const { secret_key: secretKey } = await readFirstRun(dataDir)
  const connection = { workspaceBaseUrl: `${url}/v1`, secretKey, namespace: 'service' }
  const stages = {
    appstore: await setStage(simulator.url, connection, 'appstore'),
    playstore: await setStage(simulator.url, connection, 'playstore'),
  }
  const { url: database } = await postgresOf(dataDir)
  const deals: Deal[] = []
  let broken = 0

  const buy = async (stage: Stage, buys: Deal['buys'], who: string): Promise<Deal> => {
    const product = { appstore: 'com.example.demo.', playstore: '' }[stage.store]
    const productId = product + { pass: 'pro_monthly', pack: 'coins_100' }[buys]
    const bought = { app: stage.name, account: who, customer: who, productId }
    const held = await ask(simulator.url, 'POST', `/sim/${stage.store}/purchases`, bought)
    const consumes = stage.store === 'playstore' && buys === 'pack' ? { consume_purchase: true } : {}
    const evidence = { ...held.purchase, ...consumes }
    return { stage, who, held, evidence, buys, operationId: randomUUID(), answers: [] }
  }

  /** As a client does: whatever is no verdict is asked again. */
  const final = async (deal: Deal, path: string, body: object): Promise<Body> => {
    for (const end = performance.now() + 60_000; performance.now() < end; await sleep(25)) {
      try {
        const answer = await call(url, path, { apiKey: deal.stage.keys.test, ...body })
        if (answer.status !== 503 && answer.status !== 429) {
          assert.equal(answer.status, 200, `${path} of ${deal.who}: ${JSON.stringify(answer.body)}`)
          return answer.body
        }
      } catch (error) {
        if (error instanceof assert.AssertionError) throw error
        broken++
      }
    }
    assert.fail(`${path} of ${deal.who} was never answered`)
  }
  const bring = (deal: Deal) => final(deal, '/purchase', { distinct_id: deal.who, ...deal.evidence })
  const spend = (deal: Deal) => {
    const { transaction_jwt: signedTransaction } = deal.held.purchase
    const purchase = deal.stage.store === 'appstore' ? { purchase: { type: 'appstore', signedTransaction } } : {}
    const command = { customerId: deal.who, featureId: 'coins', operationId: deal.operationId, quantity: spends }
    return final(deal, '/feature/consume', { ...command, ...purchase })
  }
  /** The App Store's pack is brought by the spend itself. */
  const live = async (deal: Deal) => {
    if (deal.buys === 'pass' || deal.stage.store === 'playstore') deal.answers.push(await bring(deal))
    if (deal.buys === 'pack') deal.answers.push(await spend(deal))
  }

  for (let round = 0; round < rounds; round++) {
    const random = createHash('sha256').update(`${seed} ${round}`).digest()
    const delayMs = random.readUInt16BE(0) % 800
    const withPostgres = round % 3 === 2
    await t.test(`after ${delayMs} ms${withPostgres ? ', PostgreSQL too' : ''}`, async () => {
      const mine: Deal[] = []
      for (const store of ['appstore', 'playstore'] as const)
        for (const buys of ['pass', 'pack'] as const)
          for (const n of [1, 2]) mine.push(await buy(stages[store], buys, `${store}-${buys}-${round}-${n}`))
      deals.push(...mine)
      const lives = Promise.all(mine.map(live))
      await sleep(delayMs)
      const { processId } = await postgresOf(dataDir)
      turnpike.process.kill('SIGKILL')
      if (withPostgres) process.kill(processId, 'SIGKILL')
      await turnpike.ended
      const told = tellings(await ask(simulator.url, 'GET', '/sim/log'))
      if (!withPostgres) await assertGrantedBefore(database, told, deals)
      turnpike = runTurnpike({ dataDir, settings })
      await turnpike.url
      await lives
    })
  }
  assert.ok(broken > 0, 'nobody noticed')

  await t.test('the store was told once of each purchase, and the same calls again change nothing', async () => {
    const ofPlay = deals.filter(({ stage }) => stage.store === 'playstore')
    const isTold = async () => {
      const told = tellings(await ask(simulator.url, 'GET', '/sim/log'))
      return ofPlay.every((deal) => told.some((path) => isOf(path, deal) && path.endsWith(lastTelling(deal)))) && told
    }
    let told = await isTold()
    for (const end = performance.now() + 60_000; !told && performance.now() < end; told = await isTold())
      await sleep(200)
    assert.ok(told, 'some purchase was never acknowledged')
    for (const deal of deals) {
      if (deal.buys === 'pass') assert.equal((await bring(deal)).idempotent_replay, true)
      else assert.deepEqual(await spend(deal), { ...deal.answers.at(-1), idempotentReplay: true })
    }
    for (const deal of ofPlay) {
      const told = tellings(await ask(simulator.url, 'GET', '/sim/log')).filter((path) => isOf(path, deal))
      const verbs = told.map((path) => path.split(':').at(-1))
      // One that its notification attached is acknowledged, and consumed when the app asks for it.
      assert.equal(new Set(verbs).size, verbs.length, `${deal.who} was told ${verbs.join()}`)
      assert.equal(verbs.at(-1), lastTelling(deal), deal.who)
    }
  })

  await t.test('everybody has what was paid, less what was spent', async () => {
    for (const deal of deals) {
      const featureId = deal.buys === 'pass' ? 'pro' : 'coins'
      const { allowed, balance } = await final(deal, '/entitled', { customerId: deal.who, featureId })
      assert.deepEqual([allowed, balance], [true, deal.buys === 'pass' ? null : packUnits - spends], deal.who)
    }
    const { paid_without_access, access_without_paid, not_acknowledged_in_time } = await ask(
      simulator.url,
      'GET',
      '/sim/invariants',
    )
    assert.deepEqual([paid_without_access, access_without_paid, not_acknowledged_in_time], [[], [], []])
    await using pool = new Pool((await postgresOf(dataDir)).url, { name: 'test', max: 1 })
    const twice = await pool.query(
      `select lineage_id from store_period where granted_to is not null group by 1 having count(*) > 1`,
    )
    assert.deepEqual(twice, [])
    const findings: Finding[] = []
    await verifyLedger(pool, { onFinding: (finding) => findings.push(finding) })
    assert.deepEqual(findings, [])
  })
})

/** Paths of acknowledgements and consumptions that the store took. */
function tellings({ log }: Body): string[] {
  return log
    .filter(({ kind, status }: Body) => kind === 'call' && status < 300)
    .map(({ what }: Body) => String(what))
    .filter((what: string) => /:(acknowledge|consume)$/.test(what))
}

function lastTelling({ buys }: Deal): string {
  return buys === 'pack' ? 'consume' : 'acknowledge'
}

/** The log cuts tokens. */
function isOf(path: string, { held, stage }: Deal): boolean {
  return stage.store === 'playstore' && path.includes(`/tokens/${held.purchase.purchase_token.slice(0, 24)}`)
}

async function assertGrantedBefore(database: string, told: string[], deals: Deal[]): Promise<void> {
  await using pool = new Pool(database, { name: 'test', max: 1 })
  const granted = await pool.query<{ evidence_key: string }>(
    `select evidence_key
     from store_period p
     join store_transaction t on t.id = p.transaction_id
     where p.granted_to is not null`,
  )
  const keys = new Set(granted.map(({ evidence_key }) => evidence_key))
  for (const deal of deals.filter((each) => told.some((path) => isOf(path, each)))) {
    const key = createHash('sha256').update(deal.held.purchase.purchase_token).digest('hex')
    assert.ok(keys.has(key), `${deal.who} was acknowledged before anything was granted`)
  }
}
