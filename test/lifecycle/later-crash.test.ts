import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import test, { after } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Pool } from '../../src/db/pool.ts'
import { type Finding, verifyLedger } from '../../src/entitlements/index.ts'
import { must } from '../../src/kernel/assert.ts'
import { ask, type Stage, setStage } from '../../store-sim/scenarios/stage.ts'
import { removeFolder, temporaryFolder } from '../harness/server.ts'
import { startCardStore } from '../harness/stripe.ts'
import { call, freePort, postgresOf, readFirstRun, runTurnpike } from '../harness/turnpike.ts'
import { type Body, openSim } from '../store-sim/sim.ts'

const rounds = Number(process.env.CRASH_ROUNDS ?? 3)
const seed = process.env.CRASH_SEED ?? 'what happens later happens once'
const folder = await temporaryFolder()
after(() => removeFolder(folder))
const dataDir = join(folder, 'data')
const dayMs = 24 * 3600_000
const stores = ['appstore', 'playstore'] as const
const changes = ['upgrade', 'refund', 'transfer'] as const
const premium = {
  appstore: { productId: 'com.example.demo.premium_monthly' },
  playstore: { productId: 'premium_monthly', basePlanId: 'monthly' },
}
/** What is bought by card, and what happens to it. */
const payments = ['once', 'renewed', 'refunded'] as const

/** A customer, and what they have in the end. */
interface Expected {
  key: string
  who: string
  pro: boolean
  premium?: boolean
  coins?: number
}

test('kill -9 in the middle of refunds, transfers, upgrades and card payments: told again, all ends as if nothing had happened', {
  timeout: 300_000,
}, async (t) => {
  const port = await freePort()
  const settings = { PORT: String(port) }
  let turnpike = runTurnpike({ dataDir, settings })
  await using stack = new AsyncDisposableStack()
  stack.defer(() => turnpike[Symbol.asyncDispose]())
  const simulator = stack.use(await openSim({ clock: 'real', seed }))
  const cards = stack.use(await startCardStore())
  const url = await turnpike.url
  const { secret_key: secretKey } = await readFirstRun(dataDir)
  const connection = { workspaceBaseUrl: `${url}/v1`, secretKey, namespace: 'service' }
  const stages = {
    appstore: await setStage(simulator.url, connection, 'appstore'),
    playstore: await setStage(simulator.url, connection, 'playstore'),
  }
  const shop = await openShop(stages.appstore, cards)
  cards.sellOnce('price_card_coins')
  const expected: Expected[] = []
  let broken = 0

  /** As clients, operators and Stripe do: whatever is no verdict is asked again. */
  async function final<T>(what: string, tryOnce: () => Promise<T | undefined>): Promise<T> {
    for (const end = performance.now() + 60_000; performance.now() < end; await sleep(25)) {
      try {
        const found = await tryOnce()
        if (found !== undefined) return found
      } catch (error) {
        if (error instanceof assert.AssertionError) throw error
        broken++
      }
    }
    assert.fail(`${what} never came to an end`)
  }
  const post = (path: string, body: object) =>
    final(`${path} ${JSON.stringify(body).slice(0, 80)}`, async (): Promise<Body> => {
      const answer = await call(url, path, body)
      if (answer.status === 503 || answer.status === 429) return undefined
      assert.equal(answer.status, 200, `${path}: ${JSON.stringify(answer.body)}`)
      return answer.body
    })

  async function bought(store: (typeof stores)[number], who: string): Promise<Body> {
    const productId = store === 'appstore' ? 'com.example.demo.pro_monthly' : 'pro_monthly'
    const asked = { app: stages[store].name, account: who, customer: who, productId }
    const held = await ask(simulator.url, 'POST', `/sim/${store}/purchases`, asked)
    await post('/purchase', { apiKey: stages[store].keys.test, distinct_id: who, ...held.purchase })
    if (store === 'playstore') {
      await final(`the acknowledgement of ${who}`, async () => {
        const { acknowledged } = await ask(simulator.url, 'POST', `/sim/playstore/purchases/${held.id}/re-sign`)
        return acknowledged ? true : undefined
      })
    }
    return held
  }

  /** At a store: the store changes it, and whoever has to do something about it does it until it is done. */
  async function change(store: (typeof stores)[number], held: Body, what: (typeof changes)[number], who: string) {
    const { keys, call: manage } = stages[store]
    const [key, at] = [keys.test, `/sim/${store}/purchases/${held.id}`]
    if (what === 'upgrade') {
      const next = await ask(simulator.url, 'POST', `${at}/upgrade`, premium[store])
      await post('/purchase', { apiKey: key, distinct_id: who, ...next.purchase })
      expected.push({ key, who, pro: true, premium: true })
    } else if (what === 'refund') {
      const [purchase] = await purchasesOf(store, who)
      await ask(simulator.url, 'POST', `${at}/refund`, { mode: 'full' })
      // The App Store tells again in an hour: somebody looks before. Google Play tells again in seconds.
      if (store === 'appstore') {
        await final(`a look at ${who}`, async () => (await manage('POST', `/purchases/${purchase.id}/reverify`)).id)
      }
      expected.push({ key, who, pro: false })
    } else {
      const next = await final(`the customer of ${who}`, () => customerOf(store, `${who}-next`))
      const [purchase] = await purchasesOf(store, who)
      await final(`the transfer of ${who}`, () =>
        manage('POST', `/purchases/${purchase.id}/transfer`, { customer_id: next, reason: 'asked for it' }).catch(
          (error) => {
            if (String(error).includes('has the purchase already')) return true
            throw error
          },
        ),
      )
      expected.push({ key, who, pro: false }, { key, who: `${who}-next`, pro: true })
    }
  }
  async function customerOf(store: (typeof stores)[number], distinctId: string): Promise<string> {
    const { call: manage, projectId } = stages[store]
    return (await manage('POST', '/customers', { project_id: projectId, distinct_id: distinctId })).id
  }
  const purchasesOf = (store: (typeof stores)[number], who: string): Promise<Body[]> =>
    final(`the purchases of ${who}`, async () => {
      return (await stages[store].call('GET', `/customers/${await customerOf(store, who)}/purchases`)).data
    })

  const tell = (type: string, object: string) => {
    const event = { type, object, id: `evt_${type}_${object}` }
    return final(`${type} of ${object}`, async () =>
      (await cards.send(shop.webhook, event)) === 200 ? true : undefined,
    )
  }
  async function pay(what: (typeof payments)[number], who: string): Promise<void> {
    const productIds = what === 'once' ? ['card_coins'] : ['card_pass']
    const command = { apiKey: shop.key, type: 'stripe', customerId: who, productIds, idempotencyKey: who }
    const { checkout } = await post('/purchase', command)
    const again = await post('/purchase', command)
    assert.deepEqual(again.checkout, checkout, 'one command, one page')
    const until = what === 'renewed' ? Date.now() - dayMs : Date.now() + 30 * dayMs
    const root = cards.pay(checkout.id, { from: until - 30 * dayMs, until })
    await tell('checkout.session.completed', checkout.id)
    if (what === 'renewed') await tell('invoice.paid', cards.invoice(root, until, until + 30 * dayMs))
    if (what === 'refunded') {
      const invoice = cards.all('invoice').find((one) => one.subscription === root)
      const charge = cards.chargeOf(String(must(invoice, 'it was paid').id))
      cards.refund(charge)
      await tell('charge.refunded', charge)
    }
    expected.push({ key: shop.key, who, pro: what === 'renewed', coins: what === 'refunded' ? 0 : 100 })
  }

  for (let round = 0; round < rounds; round++) {
    const random = createHash('sha256').update(`${seed} ${round}`).digest()
    const delayMs = random.readUInt16BE(0) % 400
    const withPostgres = round % 3 === 2
    await t.test(`after ${delayMs} ms${withPostgres ? ', PostgreSQL too' : ''}`, async () => {
      const deals = stores.flatMap((store) =>
        changes.map((what) => ({ store, what, who: `${store}-${what}-${round}` })),
      )
      const held = await Promise.all(deals.map(({ store, who }) => bought(store, who)))
      const lives = Promise.all([
        ...deals.map(({ store, what, who }, n) => change(store, held[n], what, who)),
        ...payments.map((what) => pay(what, `card-${what}-${round}`)),
      ])
      await sleep(delayMs)
      const { processId } = await postgresOf(dataDir)
      turnpike.process.kill('SIGKILL')
      if (withPostgres) process.kill(processId, 'SIGKILL')
      await turnpike.ended
      turnpike = runTurnpike({ dataDir, settings })
      await turnpike.url
      await lives
    })
  }
  assert.ok(broken > 0, 'nobody noticed')
  // What a dead process had taken is its own for a minute: that has gone by.
  await using later = new Pool((await postgresOf(dataDir)).url, { name: 'test', max: 1 })
  for (const table of ['store_inbox', 'store_outbox']) {
    await later.query(`update ${table} set due_at_ms = 0 where due_at_ms is not null`)
  }

  await t.test('everybody has what is paid, and nobody anything else', async () => {
    for (const { key, who, ...features } of expected) {
      for (const [featureId, wanted] of Object.entries(features)) {
        await final(`${featureId} of ${who}`, async () => {
          const { allowed, balance } = await post('/entitled', { apiKey: key, customerId: who, featureId })
          return (typeof wanted === 'number' ? balance : allowed) === wanted ? true : undefined
        })
      }
    }
  })

  await t.test('nothing was granted, moved or sold twice', async () => {
    assert.equal(cards.all('checkout.session').length, payments.length * rounds, 'pages')
    const moved = await later.query('select from purchase_transfer')
    assert.equal(moved.length, stores.length * rounds, 'transfers')
    const current = await later.query<{ n: number }>(
      `select count(*)::int as n
       from store_period
       where granted_to is not null
         and not grants_ended
         and type = 'subscription'
         and (access_until_ms is null or access_until_ms > extract(epoch from now()) * 1000)
       group by lineage_id
       having count(*) > 1`,
    )
    assert.deepEqual(current, [], 'one current period of each')
    const findings: Finding[] = []
    await verifyLedger(later, { onFinding: (finding) => findings.push(finding) })
    assert.deepEqual(findings, [])
  })
})

/** An app of the stage's project that sells by card: `pro` with a hundred coins for a month, and a hundred coins. */
async function openShop(
  { call: manage, projectId, origin }: Stage,
  cards: { url: string; secretKey: string; webhookSecret: string },
) {
  const coins = { feature: 'coins', allowance: 100, unlimited: false, interval: null }
  const pro = { feature: 'pro', allowance: null, unlimited: false, interval: null }
  for (const [key, type, grants] of [
    ['card_pass', 'subscription', [pro, coins]],
    ['card_coins', 'one_time', [coins]],
  ] as const) {
    const stores = [{ store: 'stripe', product_id: `price_${key}` }]
    await manage('POST', '/products', { project_id: projectId, key, name: key, type, grants, stores })
  }
  const { id } = await manage('POST', '/apps', { project_id: projectId, platform: 'web', name: 'Shop' })
  const { key } = await manage('POST', `/apps/${id}/publishable_keys`, {})
  await manage('PUT', `/apps/${id}/store_credentials`, { kind: 'endpoints', stripe_api: cards.url })
  const { secretKey: secret_key, webhookSecret: webhook_secret } = cards
  await manage('PUT', `/apps/${id}/store_credentials`, { kind: 'stripe', secret_key, webhook_secret })
  await manage('PATCH', `/apps/${id}/store_settings`, { checkout_return_urls: ['https://shop.example.com/paid'] })
  return { key: key as string, webhook: `${origin}/webhooks/stripe/${id}` }
}
