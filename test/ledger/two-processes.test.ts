import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { rm } from 'node:fs/promises'
import { Agent, request } from 'node:http'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { must } from '../../src/kernel/assert.ts'
import { testDatabase } from '../harness/database.ts'
import { temporaryFolder } from '../harness/server.ts'
import { call, readFirstRun, runTurnpike } from '../harness/turnpike.ts'
import { verify } from './verify-command.ts'

const clients = 400
const operations = 3000
const units = 1000

interface Service {
  url: string
  agent: Agent
}

interface Answer {
  status: number
  body: Record<string, unknown>
}

function post({ url, agent }: Service, path: string, body: object): Promise<Answer> {
  const { promise, resolve, reject } = Promise.withResolvers<Answer>()
  const headers = { 'content-type': 'application/json' }
  const asking = request(`${url}${path}`, { agent, method: 'POST', headers }, (response) => {
    text(response).then((said) => resolve({ status: response.statusCode ?? 0, body: JSON.parse(said) }), reject)
  })
  asking.on('error', reject)
  asking.end(JSON.stringify(body))
  return promise
}

/** As clients do: the same operation again until its answer is final. */
async function settle(service: Service, path: string, body: object): Promise<Answer> {
  for (let attempt = 0; attempt < 100; attempt++) {
    const answer = await post(service, path, body)
    if (answer.status < 500 && answer.status !== 429) return answer
    assert.equal(answer.status, 503, JSON.stringify(answer.body))
    await sleep(20 + 30 * attempt)
  }
  throw new Error('no final answer')
}

test('two processes on one database accept exactly the units there are, and each repeats what the other answered', async () => {
  await using stack = new AsyncDisposableStack()
  const folder = await temporaryFolder()
  stack.defer(() => rm(folder, { recursive: true }))
  const database = stack.use(await testDatabase())
  const MASTER_KEY = randomBytes(32).toString('base64')
  const settings = { DATABASE_URL: database.url, MASTER_KEY, ROLE: 'api', LOG_LEVEL: 'info' }

  const one = stack.use(runTurnpike({ dataDir: `${folder}/one`, settings: { ...settings, DEMO: '1' } }))
  const firstUrl = await one.url
  const two = stack.use(runTurnpike({ dataDir: `${folder}/two`, settings }))
  const services = [firstUrl, await two.url].map((url) => {
    const agent = new Agent({ keepAlive: true, maxSockets: clients / 2 })
    stack.defer(() => agent.destroy())
    return { url, agent }
  })
  const { apiKey, customer, workspace } = await contested(firstUrl, await readFirstRun(`${folder}/one`))

  const command = (n: number) => ({
    apiKey,
    customerId: customer,
    featureId: 'contested',
    operationId: `operation-${n}`,
    quantity: 1,
  })
  const answers = new Map<number, Answer>()
  const repeats = new Map<number, Answer>()
  let next = 0
  await Promise.all(
    Array.from({ length: clients }, async (_, client) => {
      for (let n = next++; n < operations; n = next++) {
        const service = must(services[(client + n) % 2], 'two of them')
        const other = must(services[(client + n + 1) % 2], 'two of them')
        // Half of the repetitions go out while the first is under way.
        const repeat = n % 3 === 0 ? () => settle(other, '/feature/consume', command(n)) : undefined
        const early = n % 6 === 0 ? repeat?.() : undefined
        answers.set(n, await settle(service, '/feature/consume', command(n)))
        if (repeat) repeats.set(n, await (early ?? repeat()))
      }
    }),
  )

  assert.equal(answers.size, operations)
  assert.equal(repeats.size, operations / 3)
  for (const [n, { status, body }] of answers) {
    assert.equal(status, 200, JSON.stringify(body))
    if (body.accepted !== true) assert.equal(body.code, 'insufficient_balance')
    const repeat = repeats.get(n)
    if (!repeat) continue
    const { idempotentReplay: replays, ...said } = body
    const { idempotentReplay: replayed, ...again } = repeat.body
    assert.deepEqual(again, said)
    assert.equal(Number(replays) + Number(replayed), 1, 'one of the two decided')
  }
  assert.equal([...answers.values()].filter(({ body }) => body.accepted === true).length, units)
  const balances = [...answers.values()].flatMap(({ body }) => (body.accepted === true ? [Number(body.balance)] : []))
  assert.deepEqual(
    balances.toSorted((a, b) => a - b),
    Array.from({ length: units }, (_, i) => i),
    'every unit was spent once',
  )
  const { body } = await call(firstUrl, workspace.balances, undefined, workspace.headers)
  assert.equal(JSON.stringify(body).includes('"balance":0'), true, JSON.stringify(body))

  const verified = await verify({ DATABASE_URL: database.url, MASTER_KEY })
  assert.deepEqual([verified.code, verified.err], [0, ''], verified.out)
  assert.match(verified.out, /^ledger: OK accounts=\d+ grants=\d+ operations=3\d{3} .*findings=0\n$/)
})

/** A customer with the units everybody wants. */
async function contested(url: string, { secret_key }: { secret_key: string }) {
  const headers = { authorization: `Bearer ${secret_key}`, 'x-service-env': 'test' }
  const ask = async (path: string, body: object) => {
    const answer = await call(url, `/v1${path}`, body, headers)
    assert.ok(answer.status < 300, `${path}: ${JSON.stringify(answer.body)}`)
    return answer.body
  }
  const project = await ask('/projects', { name: 'Contested' })
  const app = await ask('/apps', { project_id: project.id, platform: 'ios', name: 'App' })
  const key = await ask(`/apps/${String(app.id)}/publishable_keys`, {})
  await ask('/features', { project_id: project.id, key: 'contested', name: 'Contested', type: 'metered' })
  const customer = await ask('/customers', { project_id: project.id, distinct_id: 'everybody' })
  await ask(`/customers/${String(customer.id)}/grants`, { feature: 'contested', allowance: units })
  const workspace = { balances: `/v1/customers/${String(customer.id)}/balances?feature=contested`, headers }
  return { apiKey: key.key, customer: 'everybody', workspace }
}
