import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { releaseKeysKeptMs } from '../../src/kernel/limits.ts'
import { startService } from '../harness/service.ts'
import { openProject, send } from './project.ts'

const service = await startService()
after(() => service[Symbol.asyncDispose]())

test('everybody finds the keys that verify releases, within seconds of a change, and no revoked one', async () => {
  const project = await openProject(service)
  const keys = async () => {
    const { status, headers, body } = await send(service.url, 'GET', '/.well-known/release-keys', undefined)
    assert.equal(status, 200)
    assert.equal(headers.get('cache-control'), 'public, max-age=300')
    return body.keys.filter(({ project_id }: { project_id: string }) => project_id === project.id)
  }
  const until = async (count: number) => {
    const deadline = performance.now() + 5 * releaseKeysKeptMs
    for (;;) {
      const found = await keys()
      if (found.length === count || performance.now() > deadline) return found
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  }
  const key = await project.post('/signing_keys', { project_id: project.id, key_id: 'k' })
  await project.post(`/signing_keys/${key.id}/activate`, {})
  const staged = await project.post('/signing_keys', { project_id: project.id, key_id: 'next' })
  const shown = (of: typeof key, status: string) => ({
    ...{ kty: 'OKP', crv: 'Ed25519', x: Buffer.from(of.public_key, 'base64').toString('base64url') },
    ...{ kid: of.key_id, use: 'sig', alg: 'EdDSA', project_id: project.id, environment: 'test', status },
  })
  assert.deepEqual(await until(2), [shown(key, 'active'), shown(staged, 'staged')])
  await project.post(`/signing_keys/${staged.id}/revoke`)
  assert.deepEqual(await until(1), [shown(key, 'active')])
})
