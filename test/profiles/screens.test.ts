import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { after, test } from 'node:test'
import { downloadsOf } from '../conformance/descriptor.ts'
import { runtime } from '../harness/a-screen-draft.ts'
import { startService } from '../harness/service.ts'
import { uploadedDraft } from '../harness/upload.ts'
import { openStage } from './stage.ts'

const service = await startService()
after(() => service[Symbol.asyncDispose]())
const stage = await openStage(service)
const { project } = stage
await project.patch(`/projects/${project.id}`, { client_runtime: runtime })
await project.feature('pro', { type: 'boolean' })
const stores = [
  { store: 'appstore', product_id: 'pro.yearly' },
  { store: 'playstore', product_id: 'pro', base_plan_id: 'yearly' },
]
const product = { key: 'pro', name: 'Pro', type: 'subscription', grants: [{ feature: 'pro' }], stores }
await project.post('/products', { project_id: project.id, ...product })
const draft = await uploadedDraft({ url: service.url, key: service.secretKey, projectId: project.id })
await stage.publish('offer', draft)

/** What the only release of the profile holds. */
async function shown(locale?: string) {
  const { body } = await stage.profile('ada', locale === undefined ? {} : { locale })
  assert.equal(body.releases.length, 1)
  const bytes = Buffer.from(body.releases[0].envelope.descriptorBytesBase64, 'base64')
  return { descriptor: JSON.parse(bytes.toString()), delivery: body.delivery }
}

test('a device gets the screens of its locale: the very one, its language, or the default', async () => {
  const scene = async (locale?: string) => (await shown(locale)).descriptor.render.ser.sha256
  const [en, de] = [await scene('en'), await scene('de')]
  assert.notEqual(en, de)
  assert.equal(await scene('de-AT'), de)
  assert.equal(await scene('fr'), en)
  assert.equal(await scene(), en)
})

test('everything that a release names can be fetched from the bases of its profile, as it says', async () => {
  const { descriptor, delivery } = await shown('de')
  const files = downloadsOf(descriptor, 'service')
  assert.equal(files.length, 7)
  for (const { key, sha256, sizeBytes, contentType } of files) {
    const base = key.startsWith('renders/') ? delivery.renderBaseUrl : delivery.assetBaseUrl
    // The service of a test speaks http, and names itself as it would be reached.
    const answer = await fetch(new URL(new URL(key, base).pathname, service.url))
    const bytes = Buffer.from(await answer.arrayBuffer())
    assert.deepEqual(
      [answer.status, answer.headers.get('content-type'), bytes.length, hash('sha256', bytes)],
      [200, contentType, sizeBytes, sha256],
    )
  }
})
