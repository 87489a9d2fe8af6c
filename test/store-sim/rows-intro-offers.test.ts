import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import { uuidV7 } from '../../src/kernel/ids.ts'
import { assertRefused } from '../app/project.ts'
import { runtime } from '../harness/a-screen-draft.ts'
import { uploadedDraft } from '../harness/upload.ts'
import { openStage } from '../profiles/stage.ts'
import { openShop, someone } from './shop.ts'
import { appleProducts } from './shop-catalogue.ts'
import type { Body } from './sim.ts'

/** Decisions about introductory offers, spent in the simulator as a device would. `rows.md` names them. */
const { service, sim } = await openShop()
const stage = await openStage(service)
const { project, app } = stage
const bundle = 'com.example.offers'
await project.patch(`/projects/${project.id}`, { client_runtime: runtime })
await project.patch(`/apps/${app.id}`, { bundle_id: bundle })
await project.feature('pro', { type: 'boolean' })
const stores = [
  { store: 'appstore', product_id: 'monthly' },
  { store: 'playstore', product_id: 'pro', base_plan_id: 'yearly' },
]
const grants = [{ feature: 'pro' }]
await project.post('/products', {
  project_id: project.id,
  key: 'pro',
  name: 'Pro',
  type: 'subscription',
  grants,
  stores,
})
await sim.control('POST', '/sim/connect', {
  ...{ workspace_base_url: `${service.url}/v1`, secret_key: service.secretKey, app_id: app.id },
})
await sim.control('PUT', '/sim/appstore/products', { app: bundle, products: appleProducts })

for (const introEligibility of ['alwaysEligible', 'alwaysIneligible', 'automatic']) {
  const draft = await uploadedDraft({ url: service.url, key: service.secretKey, projectId: project.id })
  for (const placement of draft.placements) {
    Object.assign(placement, { productId: 'pro', appStore: { introEligibility, billingPlan: 'default' } })
  }
  await stage.publish(introEligibility.toLowerCase(), draft)
}
const { data } = await project.get(`/experiences?project_id=${project.id}`)
const idOf = (key: string) => data.find((each: Body) => each.key === key).id

/** A customer, what their Apple account holds, and what their device asks. */
async function visitor(key: string) {
  const who = someone()
  await project.customer(who)
  const lifetime = { app: bundle, account: who, productId: 'lifetime', customer: who }
  const held = await sim.control('POST', '/sim/appstore/purchases', lifetime)
  const { body } = await stage.profile(who)
  const arm = body.armedLegs.find(({ reference }: Body) => reference.experienceId === idOf(key))
  assert.ok(arm, `${key} is armed`)
  const { versionId, legId, descriptorSha256 } = arm.reference
  const question = {
    ...{ distinctId: who, journeyId: uuidV7(Date.now()), experienceVersionId: versionId, legId, descriptorSha256 },
    ...{ placementId: 'main', transactionId: String(held.appTransactionId) },
  }
  return { who, question }
}

const ask = (question: Record<string, unknown>, through = app) => through.post('/app-store/intro-eligibility', question)
const buy = (account: string, introToken: string, productId = 'monthly') =>
  sim.call('POST', '/sim/appstore/purchases', { app: bundle, account, productId, introToken })
const offerIn = ({ signedTransaction }: Body) =>
  JSON.parse(Buffer.from(signedTransaction.split('.')[1], 'base64url').toString()).offerType

describe('what the App Store does with a token', () => {
  for (const [row, key, offerType] of [
    ['alwaysEligible: the offer is given', 'alwayseligible', 1],
    ['alwaysIneligible: it is not', 'alwaysineligible', undefined],
  ] as const) {
    test(row, async () => {
      const { who, question } = await visitor(key)
      const { status, body } = await ask(question)
      assert.equal(status, 200, JSON.stringify(body))
      const bought = await buy(who, body.token)
      assert.equal(bought.status, 200, JSON.stringify(bought.body))
      assert.equal(offerIn(bought.body), offerType)
      assert.equal((await buy(who, body.token)).status, 400, 'a nonce serves once')
    })
  }

  test('it is for the product, and for the account', async () => {
    const [{ question }, other] = [await visitor('alwayseligible'), await visitor('alwayseligible')]
    const { body } = await ask(question)
    assert.equal((await buy(other.who, body.token)).status, 400)
    assert.equal((await buy(question.distinctId, body.token, 'yearly')).status, 400)
    assert.equal((await buy(question.distinctId, body.token)).status, 200)
  })
})

describe('every miss is the same', () => {
  const assertMissed = async (question: Record<string, unknown>, through = app) => {
    const answer = await ask(question, through)
    assertRefused(answer, 404, 'not_found')
    const { request_id, ...words } = answer.body
    assert.deepEqual(words, { code: 'not_found', message: 'Not found.' })
    assert.equal(typeof request_id, 'string')
  }
  const rows: { row: string; change: (other: Body) => object }[] = [
    { row: 'a customer that nobody knows', change: () => ({ distinctId: 'nobody' }) },
    { row: 'another version', change: ({ experienceVersionId }) => ({ experienceVersionId }) },
    { row: 'another leg', change: () => ({ legId: 'f'.repeat(64) }) },
    { row: 'another descriptor', change: ({ descriptorSha256 }) => ({ descriptorSha256 }) },
    { row: 'a journey that is no UUIDv7', change: () => ({ journeyId: randomUUID() }) },
    { row: 'another placement', change: () => ({ placementId: 'elsewhere' }) },
    { row: 'a transaction id that is none', change: () => ({ transactionId: 'x1' }) },
    { row: 'a transaction id of 21 digits', change: () => ({ transactionId: '1'.repeat(21) }) },
  ]
  for (const { row, change } of rows) {
    test(row, async () => {
      const { question } = await visitor('alwayseligible')
      const { question: other } = await visitor('alwaysineligible')
      await assertMissed({ ...question, ...change(other) })
    })
  }

  test('a placement that leaves it to the store', async () => {
    await assertMissed((await visitor('automatic')).question)
  })

  test('the key of an Android app, for an offer', async () => {
    await assertMissed((await visitor('alwayseligible')).question, await project.app('android'))
  })

  test('a transaction that is known to be somebody else’s', async () => {
    const [{ who, question }, other] = [await visitor('alwayseligible'), await visitor('alwayseligible')]
    await project.patch(`/apps/${app.id}/store_settings`, { unbound_purchases: 'first_claim' })
    const pass = { app: bundle, account: who, productId: 'monthly', customer: who }
    const held = await sim.control('POST', '/sim/appstore/purchases', pass)
    const bought = await app.post('/purchase', { distinct_id: who, ...held.purchase })
    assert.equal(bought.status, 200, JSON.stringify(bought.body))
    assert.equal((await ask({ ...question, transactionId: held.transactionId })).status, 200)
    await assertMissed({ ...other.question, transactionId: held.transactionId })
    await assertMissed({ ...other.question, transactionId: held.appTransactionId })
  })
})
