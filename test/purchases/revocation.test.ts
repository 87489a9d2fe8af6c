import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { selectSignedBy } from '../../src/purchases/apple/leaf-store.ts'
import { eventually, openProject } from '../app/project.ts'
import { startService } from '../harness/service.ts'
import { openSim } from '../store-sim/sim.ts'

const service = await startService()
after(() => service[Symbol.asyncDispose]())

/** An iOS app that is connected to a simulator of its own, whose certificates nobody has seen yet. */
async function connected(seed: string) {
  const sim = await openSim({ seed, clock: 'real' })
  const project = await openProject(service)
  const app = await project.app('ios')
  await project.patch(`/apps/${app.id}`, { bundle_id: 'com.example.demo' })
  const connection = { workspace_base_url: `${service.url}/v1`, secret_key: service.secretKey, app_id: app.id }
  await sim.control('POST', '/sim/connect', connection)
  await project.feature('pro', { type: 'boolean' })
  const stores = [{ store: 'appstore', product_id: 'com.example.demo.lifetime' }]
  const product = { key: 'lifetime', name: 'Lifetime', type: 'one_time', grants: [{ feature: 'pro' }], stores }
  await project.post('/products', { project_id: project.id, ...product })
  const lifetime = { productId: 'com.example.demo.lifetime' }
  return {
    ...{ sim, project, app },
    buy: async (account: string) => (await sim.buyApple({ ...lifetime, account, customer: account })).purchase,
    bring: (who: string, purchase: object) => app.post('/purchase', { ...purchase, distinct_id: who }),
    settings: (changes: object) => project.patch(`/apps/${app.id}/store_settings`, changes),
    leaves: () =>
      service.pool.query<{ status: string }>(
        `select status from apple_leaf where issuer_fingerprint is not null and status = 'revoked'`,
      ),
    [Symbol.asyncDispose]: () => sim[Symbol.asyncDispose](),
  }
}

test('a certificate is asked about once it was seen; where that is demanded, nothing is taken before', async () => {
  await using world = await connected('strict')
  const { buy, bring, settings } = world
  await settings({ revocation: 'strict' })
  const bought = await buy('ann')
  const first = await bring('ann', bought)
  assert.deepEqual([first.status, first.body.code], [503, 'app_store_purchase_unavailable'])
  await eventually(async () => (await bring('ann', await buy('ann'))).status === 200, 10_000)
})

test('a responder that is down stops nothing, and a revoked certificate ends what it signs', async () => {
  await using world = await connected('background')
  const { sim, buy, bring } = world
  await sim.control('PUT', '/sim/faults', { faults: [{ kind: 'ocsp_down' }] })
  assert.equal((await bring('ann', await buy('ann'))).status, 200)

  await sim.control('PUT', '/sim/faults', { faults: [{ kind: 'ocsp_revoked' }] })
  await sim.control('POST', '/sim/certificates/rotate')
  assert.equal((await bring('ben', await buy('ben'))).status, 200, 'nobody was asked yet')
  await eventually(async () => (await world.leaves()).length > 0, 10_000)
  await eventually(async () => {
    const { status, body } = await bring('cid', await buy('cid'))
    return status === 400 && body.code === 'app_store_purchase_invalid'
  }, 10_000)
  const purchaseOf = async (who: string) => {
    const { data } = await world.project.get(`/customers/${await world.project.customer(who)}/purchases`)
    return data[0].id
  }
  const [{ fingerprint } = { fingerprint: '' }] = await service.pool.query<{ fingerprint: string }>(
    `select fingerprint from apple_leaf where status = 'revoked' and fingerprint in (select signer from store_transaction)`,
  )
  const { count, purchases } = await selectSignedBy(service.pool, fingerprint, { max: 10 })
  assert.deepEqual({ count, purchases }, { count: 1, purchases: [await purchaseOf('ben')] })
  assert.equal((await selectSignedBy(service.pool, 'none', { max: 10 })).count, 0)
  const told = service.errors.filter((line) => line.includes('was revoked'))
  assert.ok(told.length > 0)
  service.errors.length = 0
})
