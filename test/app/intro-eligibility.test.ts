import assert from 'node:assert/strict'
import { createPublicKey, randomUUID } from 'node:crypto'
import { after, describe, test } from 'node:test'
import { decodeProtectedHeader, importSPKI, jwtVerify } from 'jose'
import { uuidV7 } from '../../src/kernel/ids.ts'
import { dayMs, introTokensPerMinute, offerKeptDays } from '../../src/kernel/limits.ts'
import { runtime } from '../harness/a-screen-draft.ts'
import { startAppStore } from '../harness/app-store.ts'
import { aTransaction, signApple, testPki } from '../harness/apple-pki.ts'
import { startService } from '../harness/service.ts'
import { uploadedDraft } from '../harness/upload.ts'
import { openStage } from '../profiles/stage.ts'
import type { Body } from './answers.ts'
import { anEvent, assertRefused, eventually } from './project.ts'

const service = await startService()
const pki = await testPki()
const store = await startAppStore(pki)
after(async () => {
  await store[Symbol.asyncDispose]()
  await service[Symbol.asyncDispose]()
})
const stage = await openStage(service)
const { project, app } = stage
await project.patch(`/projects/${project.id}`, { client_runtime: runtime })
await project.patch(`/apps/${app.id}`, { bundle_id: 'com.example.app' })
const android = await project.app('android')
const put = (body: object) => service.workspace('PUT', `/apps/${app.id}/store_credentials`, { body })
await put({ kind: 'appstore_trust', roots: [pki.root.certificate.toString()] })
await put({ kind: 'appstore', ...store.key })
await project.feature('pro', { type: 'boolean' })
const stores = [
  { store: 'appstore', product_id: 'pro.yearly' },
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
await project.post('/products', {
  ...{ project_id: project.id, key: 'once', name: 'Once', type: 'one_time', grants },
  stores: [
    { store: 'appstore', product_id: 'once' },
    { store: 'playstore', product_id: 'once' },
  ],
})

async function draftWith(introEligibility: string, productId = 'pro') {
  const draft = await uploadedDraft({ url: service.url, key: service.secretKey, projectId: project.id })
  for (const placement of draft.placements) {
    Object.assign(placement, { productId, appStore: { introEligibility, billingPlan: 'default' } })
    if (productId !== 'pro') Object.assign(placement, { googlePlay: undefined })
  }
  return draft
}

/** What a device that runs the newest publication for the first time would ask. */
async function questionOf(key: string, who: string): Promise<Body> {
  const { body } = await stage.profile(who)
  const arm = body.armedLegs.find(({ reference }: Body) => reference.experienceId === ids.get(key))
  assert.ok(arm, `${key} is armed`)
  const { versionId, legId, descriptorSha256 } = arm.reference
  return {
    ...{ distinctId: who, journeyId: uuidV7(Date.now()), experienceVersionId: versionId, legId, descriptorSha256 },
    ...{ placementId: 'main', transactionId: '704289572311513293' },
  }
}

const ids = new Map<string, string>()
async function publish(key: string, draft: object): Promise<void> {
  await stage.publish(key, draft)
  const { data } = await project.get(`/experiences?project_id=${project.id}`)
  ids.set(key, data.find((each: Body) => each.key === key).id)
}
await publish('allowed', await draftWith('alwaysEligible'))
await publish('denied', await draftWith('alwaysIneligible'))
await publish('automatic', await draftWith('automatic'))
await publish('once', await draftWith('alwaysEligible', 'once'))

let people = 0
async function someone(): Promise<string> {
  const who = `visitor-${++people}`
  await project.customer(who)
  return who
}

const ask = (question: Body, through = app) => through.post('/app-store/intro-eligibility', question)
const publicKey = await importSPKI(
  createPublicKey(store.key.private_key).export({ type: 'spki', format: 'pem' }).toString(),
  'ES256',
)

async function assertMissed(question: Body, through = app): Promise<void> {
  const answer = await ask(question, through)
  assertRefused(answer, 404, 'not_found')
  const { code, message, ...more } = answer.body
  assert.deepEqual([code, message, Object.keys(more)], ['not_found', 'Not found.', ['request_id']])
}

describe('POST /app-store/intro-eligibility, 200', () => {
  test('a token as the App Store reads it, with product and decision of the signed release, another one each time', async () => {
    const nonces = new Set()
    for (const [key, allowIntroductoryOffer] of [
      ['allowed', true],
      ['denied', false],
    ] as const) {
      const question = await questionOf(key, await someone())
      for (let n = 0; n < 2; n++) {
        const { status, body, headers } = await ask(question)
        assert.deepEqual([status, Object.keys(body), headers.get('cache-control')], [200, ['token'], 'no-store'])
        const audience = 'introductory-offer-eligibility'
        const { payload } = await jwtVerify(body.token, publicKey, { audience, issuer: store.key.issuer_id })
        assert.deepEqual(decodeProtectedHeader(body.token), { alg: 'ES256', typ: 'JWT', kid: store.key.key_id })
        const { iat, nonce, ...rest } = payload
        assert.ok(Math.abs(Number(iat) - Date.now() / 1000) < 60)
        assert.deepEqual(rest, {
          ...{ iss: store.key.issuer_id, aud: audience, bid: 'com.example.app' },
          ...{ productId: 'pro.yearly', allowIntroductoryOffer },
          transactionId: question.transactionId,
        })
        nonces.add(nonce)
      }
    }
    assert.equal(nonces.size, 4)
  })

  test('a journey that was reported is looked up: until its leg is completed, for its customer only', async () => {
    const [who, other] = [await someone(), await someone()]
    const question = await questionOf('allowed', who)
    const report = async (event: string, more: object = {}) => {
      const properties = {
        ...{ journey_id: question.journeyId, experience_id: ids.get('allowed'), leg_id: question.legId },
        ...{ experience_version_id: question.experienceVersionId, leg_generation: 0 },
        ...{ started_at: new Date().toISOString(), ...more },
      }
      assert.equal((await app.post('/event', anEvent(who, { event, properties }))).status, 200)
    }
    await report('$journey_leg_started')
    await eventually(async () => {
      const { data } = await project.get(`/journeys?experience_id=${ids.get('allowed')}`)
      return data.some((each: Body) => each.id === question.journeyId)
    })
    assert.equal((await ask(question)).status, 200)
    await assertMissed({ ...question, distinctId: other })
    await report('$journey_leg_completed', { outcome: 'completed', completed_at: new Date().toISOString() })
    await eventually(async () => (await ask(question)).status === 404)
  })

  test('what was published before is known for a week', async () => {
    await publish('week', await draftWith('alwaysEligible'))
    const question = await questionOf('week', await someone())
    await publish('week', await draftWith('alwaysIneligible'))
    assert.equal((await ask(question)).status, 200)
    const replaced = (days: number) =>
      service.pool.query(
        `update publication p
         set published_at = now() - $2 * interval '1 millisecond'
         from experience e
         where e.id = p.experience_id
           and e.public_id = $1
           and p.seq = (select max(seq) from publication where experience_id = e.id)`,
        [ids.get('week'), days * dayMs],
      )
    await replaced(offerKeptDays - 0.001)
    assert.equal((await ask(question)).status, 200)
    await replaced(offerKeptDays)
    await assertMissed(question)
  })

  test('what was taken back is known for a week, too', async () => {
    await publish('back', await draftWith('alwaysEligible'))
    const question = await questionOf('back', await someone())
    await stage.change('back', 'unpublish')
    assert.equal((await ask(question)).status, 200)
    await service.pool.query(
      `update publication_pointer
       set changed_at = now() - $2 * interval '1 millisecond'
       where experience_id = (select id from experience where public_id = $1)`,
      [ids.get('back'), offerKeptDays * dayMs],
    )
    await assertMissed(question)
  })
})

describe('POST /app-store/intro-eligibility, 404', () => {
  test('any field changed to another value that exists somewhere is the same answer', async () => {
    const who = await someone()
    const [question, other] = [await questionOf('allowed', who), await questionOf('denied', who)]
    for (const field of ['experienceVersionId', 'descriptorSha256'] as const) {
      await assertMissed({ ...question, [field]: other[field] })
    }
    await assertMissed({ ...question, legId: other.legId })
    await assertMissed({ ...question, placementId: 'later' })
    await assertMissed({ ...question, distinctId: 'never seen' })
    for (const journeyId of [randomUUID(), 'j', `${question.journeyId}0`])
      await assertMissed({ ...question, journeyId })
    for (const transactionId of ['abc', '1'.repeat(21), '-1', '1.0']) await assertMissed({ ...question, transactionId })
    assert.equal((await ask({ ...question, transactionId: '1'.repeat(20) })).status, 200)
  })

  test('placements that leave it to the store, or sell no subscription', async () => {
    const who = await someone()
    await assertMissed(await questionOf('automatic', who))
    await assertMissed(await questionOf('once', who))
  })

  test('the key of an Android app', async () => {
    await assertMissed(await questionOf('allowed', await someone()), android)
  })

  test('a transaction that is known to be somebody else’s, by its id or that of the app transaction', async () => {
    const [owner, other] = [await someone(), await someone()]
    const bought = aTransaction({ productId: 'once', appTransactionId: '700000000000000001' })
    const question = await questionOf('allowed', owner)
    await project.patch(`/apps/${app.id}/store_settings`, { unbound_purchases: 'first_claim' })
    const transaction_jwt = signApple(pki, bought)
    const { status, body } = await app.post('/purchase', { type: 'appstore', distinct_id: owner, transaction_jwt })
    assert.equal(status, 200, JSON.stringify(body))
    for (const transactionId of [bought.transactionId, '700000000000000001']) {
      assert.equal((await ask({ ...question, transactionId })).status, 200)
      await assertMissed({ ...question, distinctId: other, transactionId })
    }
  })
})

test('400 for fields that are missing, empty, too long, unknown, or no hash; at the limit they are looked at', async () => {
  const question = await questionOf('allowed', await someone())
  const texts = ['journeyId', 'experienceVersionId', 'placementId', 'transactionId']
  for (const field of texts) {
    for (const value of ['', 'é'.repeat(128), 1, null, undefined]) {
      assertRefused(await ask({ ...question, [field]: value }), 400, 'invalid_request')
    }
    await assertMissed({ ...question, [field]: `${'é'.repeat(127)}x` })
  }
  for (const field of ['legId', 'descriptorSha256']) {
    for (const value of ['', 'A'.repeat(64), 'a'.repeat(63), 'a'.repeat(65), undefined]) {
      assertRefused(await ask({ ...question, [field]: value }), 400, 'invalid_request')
    }
  }
  assertRefused(await ask({ ...question, more: 1 }), 400, 'unknown_field')
})

test('410 for a deleted customer', async () => {
  const question = await questionOf('allowed', await someone())
  await project.customer('gone')
  await project.tombstone('gone')
  assertRefused(await ask({ ...question, distinctId: 'gone' }), 410, 'customer_deleted')
})

test(`429 for the next one after ${introTokensPerMinute} of one customer in a minute; another customer is answered`, async () => {
  const [question, other] = [await questionOf('allowed', await someone()), await questionOf('allowed', await someone())]
  for (let n = 0; n < introTokensPerMinute; n++) assert.equal((await ask(question)).status, 200)
  assertRefused(await ask(question), 429, 'rate_limited')
  assert.equal((await ask(other)).status, 200)
})

test('503 without a key of the App Store, once everything else fits', async () => {
  const question = await questionOf('allowed', await someone())
  await service.workspace('DELETE', `/apps/${app.id}/store_credentials?kind=appstore`)
  await assertMissed({ ...question, placementId: 'later' })
  assertRefused(await ask(question), 503, 'service_unavailable')
})
