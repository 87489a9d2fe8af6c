import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, test } from 'node:test'
import { artefactPieceBytes } from '../../src/kernel/limits.ts'
import { startService } from '../harness/service.ts'
import { upload } from '../harness/upload.ts'
import { openProject } from './project.ts'

const service = await startService()
after(() => service[Symbol.asyncDispose]())
const project = await openProject(service)
const to = { url: service.url, key: service.secretKey, projectId: project.id }

const kinds: [contentType: string, address: (sha256: string) => string][] = [
  ['application/vnd.service.scene', (sha256) => `/r/renders/sha256/${sha256}.ser`],
  ['image/png', (sha256) => `/a/assets/sha256/${sha256}.png`],
  ['image/jpeg', (sha256) => `/a/assets/sha256/${sha256}.jpg`],
  ['image/webp', (sha256) => `/a/assets/sha256/${sha256}.webp`],
  ['font/ttf', (sha256) => `/a/assets/sha256/${sha256}.ttf`],
  ['font/otf', (sha256) => `/a/assets/sha256/${sha256}.otf`],
  ['video/mp4', (sha256) => `/a/assets/sha256/${sha256}.mp4`],
  ['application/octet-stream', (sha256) => `/a/assets/sha256/${sha256}.bin`],
  ['application/octet-stream', (sha256) => `/a/screen-behavior/sha256/${sha256}.bin`],
]

for (const [contentType, address] of kinds) {
  test(`${address('…')} is the file as it was sent, for everybody and for ever`, async () => {
    const bytes = randomBytes(2 * artefactPieceBytes + 7)
    const { sha256 } = (await upload(to, bytes, contentType)).body
    const path = address(sha256)
    const get = await fetch(service.url + path, { headers: { 'accept-encoding': 'gzip' } })
    assert.equal(get.status, 200)
    assert.ok(Buffer.from(await get.arrayBuffer()).equals(bytes))
    const head = await fetch(service.url + path, { method: 'HEAD' })
    assert.equal(await head.text(), '')
    for (const { status, headers } of [get, head]) {
      assert.equal(status, 200)
      assert.equal(headers.get('content-type'), contentType)
      assert.equal(headers.get('content-length'), String(bytes.length))
      assert.equal(headers.get('cache-control'), 'public, max-age=31536000, immutable')
      assert.equal(headers.get('content-encoding'), null)
      assert.equal(headers.get('set-cookie'), null)
    }
  })
}

test('404 for what nobody uploaded, another ending, another folder, and no hash at all', async () => {
  const { sha256 } = (await upload(to, randomBytes(10), 'image/png')).body
  const paths = [
    ...[`/a/assets/sha256/${sha256}.jpg`, `/a/assets/sha256/${sha256}.json`, `/r/renders/sha256/${sha256}.ser`],
    ...[`/a/assets/sha256/${'0'.repeat(64)}.png`, `/a/assets/sha256/${sha256.toUpperCase()}.png`, '/a/assets/sha256/x'],
    ...[`/a/assets/sha256/${sha256}`, `/a/assets/sha256/..%2f${sha256}.png`, `/a/renders/sha256/${sha256}.png`],
  ]
  for (const path of paths) {
    const answer = await fetch(service.url + path)
    assert.equal(answer.status, 404, path)
    assert.match(await answer.text(), /"not_found"/)
    assert.equal(answer.headers.get('cache-control'), null)
  }
})

test('a manifest is not a file of a release, and files of a deleted project are gone', async () => {
  const { sha256 } = (await upload(to, Buffer.from('{}'), 'application/json')).body
  assert.equal((await fetch(`${service.url}/a/assets/sha256/${sha256}.json`)).status, 404)
  const { body: other } = await service.workspace('POST', '/projects', { body: { name: 'Other' } })
  const file = (await upload({ ...to, projectId: other.id }, randomBytes(10), 'image/png')).body
  const path = `${service.url}/a/assets/sha256/${file.sha256}.png`
  assert.equal((await fetch(path)).status, 200)
  await service.workspace('DELETE', `/projects/${other.id}`)
  assert.equal((await fetch(path)).status, 404)
})

test('many who fetch at once get it whole', async () => {
  const bytes = randomBytes(5 * artefactPieceBytes)
  const { sha256 } = (await upload(to, bytes, 'image/webp')).body
  const all = await Promise.all(
    Array.from({ length: 20 }, async () => {
      const answer = await fetch(`${service.url}/a/assets/sha256/${sha256}.webp`)
      return Buffer.from(await answer.arrayBuffer()).equals(bytes)
    }),
  )
  assert.ok(all.every(Boolean))
})
