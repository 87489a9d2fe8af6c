import assert from 'node:assert/strict'
import { hash, randomBytes } from 'node:crypto'
import { after, test } from 'node:test'
import { forgetBrokenUploads } from '../../src/experiences/index.ts'
import {
  artefactPieceBytes,
  assetBytesMax,
  manifestBytesMax,
  sceneBytesMax,
  uploadsAtOnceMax,
} from '../../src/kernel/limits.ts'
import { upload } from '../harness/upload.ts'
import { type Api, assertRefused, auditOf, startApi } from './api.ts'

const api: Api = await startApi()
after(() => api[Symbol.asyncDispose]())
const ws = await api.workspace()
const to = { url: api.url, key: ws.key }
const png = 'image/png'

const blobs = async () => (await api.pool.query('select id from artefact_blob')).length

/** As a slow sender's, in chunks of odd sizes. */
function streamed(bytes: Buffer): ReadableStream {
  let at = 0
  return new ReadableStream({
    pull(controller) {
      if (at >= bytes.length) return controller.close()
      controller.enqueue(new Uint8Array(bytes.subarray(at, at + 70_001)))
      at += 70_001
    },
  })
}

test('201: a file is known by its SHA-256, with its size and type; 200 when it is sent again', async () => {
  const bytes = randomBytes(1000)
  const sha256 = hash('sha256', bytes)
  const first = await upload(to, bytes, png)
  assert.equal(first.status, 201, JSON.stringify(first.body))
  const { created_at: _, ...artifact } = first.body
  assert.deepEqual(artifact, {
    ...{ object: 'artifact', id: sha256, environment: 'test', sha256, size_bytes: 1000, content_type: png },
  })
  const again = await upload({ ...to, environment: 'live' }, bytes, 'IMAGE/PNG; charset=x')
  assert.deepEqual([again.status, again.body.id, again.body.created_at], [200, sha256, first.body.created_at])
  assert.deepEqual(await auditOf(api.pool, sha256), [{ action: 'create', object: 'artifact' }])
})

test('a file that arrives in chunks is the same as one that arrives at once, at every border of pieces', async () => {
  for (const size of [1, artefactPieceBytes - 1, artefactPieceBytes, artefactPieceBytes + 1, 3 * artefactPieceBytes]) {
    const bytes = randomBytes(size)
    const { status, body } = await upload(to, streamed(bytes), 'application/octet-stream')
    assert.deepEqual([status, body.sha256, body.size_bytes], [201, hash('sha256', bytes), size])
    const pieces = await api.pool.query<{ bytes: Buffer }>(
      `select p.bytes from artefact a join artefact_piece p using (blob_id) where a.sha256 = $1 order by p.n`,
      [body.sha256],
    )
    assert.ok(Buffer.concat(pieces.map((piece) => piece.bytes)).equals(bytes))
    assert.ok(pieces.every((piece) => piece.bytes.length <= artefactPieceBytes))
  }
})

test('the same bytes may be a file of another type too, and of another project', async () => {
  const bytes = randomBytes(10)
  assert.equal((await upload(to, bytes, 'font/ttf')).status, 201)
  assert.equal((await upload(to, bytes, 'application/octet-stream')).status, 201)
  const other = await api.workspace()
  assert.equal((await upload({ ...to, key: other.key }, bytes, 'font/ttf')).status, 201)
})

test('one file sent by several at once is stored once', async () => {
  const bytes = randomBytes(500_000)
  const all = await Promise.all([1, 2, 3, 4].map(() => upload(to, bytes, png)))
  assert.deepEqual(
    all.map(({ status }) => status).toSorted((a, b) => a - b),
    [200, 200, 200, 201],
  )
  const rows = await api.pool.query('select 1 from artefact where sha256 = $1', [hash('sha256', bytes)])
  assert.equal(rows.length, 1)
})

test('an Idempotency-Key is kept: the first answer again, and 409 for another file', async () => {
  const [bytes, other] = [randomBytes(10), randomBytes(10)]
  const keyed = { ...to, headers: { 'idempotency-key': 'upload-1' } }
  assert.equal((await upload(keyed, bytes, png)).status, 201)
  const again = await upload(keyed, bytes, png)
  assert.deepEqual([again.status, again.headers.get('idempotent-replayed')], [201, 'true'])
  assertRefused(await upload(keyed, other, png), 409, 'idempotency_conflict')
})

test('400 artifact_hash_mismatch for another hash than the named one, and nothing is stored', async () => {
  const bytes = randomBytes(10)
  const named = (sha256: string) => upload({ ...to, query: `sha256=${sha256}` }, bytes, png)
  const refused = await named('0'.repeat(64))
  assertRefused(refused, 400, 'artifact_hash_mismatch', 'sha256')
  assert.deepEqual(refused.body.error.details, { sha256: hash('sha256', bytes) })
  assert.equal((await api.pool.query('select 1 from artefact where sha256 = $1', [hash('sha256', bytes)])).length, 0)
  assert.equal((await named(hash('sha256', bytes))).status, 201)
  assertRefused(await named('short'), 400, 'invalid_request')
})

test('400 for a type that is none of a screen, for no file, for a coded one', async () => {
  assertRefused(await upload(to, randomBytes(10), 'text/html'), 400, 'artifact_type_unknown', 'Content-Type')
  assertRefused(await upload(to, randomBytes(10), 'image/svg+xml'), 400, 'artifact_type_unknown', 'Content-Type')
  assertRefused(await upload(to, Buffer.alloc(0), png), 400, 'invalid_request')
  const coded = { ...to, headers: { 'content-encoding': 'gzip' } }
  assertRefused(await upload(coded, randomBytes(10), png), 400, 'unsupported_encoding')
})

test('a file may have as many bytes as clients take of its type, and not one more', async () => {
  const manifest = 'application/json'
  assert.equal((await upload(to, Buffer.alloc(manifestBytesMax, ' '), manifest)).status, 201)
  const before = await blobs()
  assertRefused(await upload(to, Buffer.alloc(manifestBytesMax + 1, ' '), manifest), 413, 'payload_too_large')
  assertRefused(await upload(to, streamed(Buffer.alloc(manifestBytesMax + 1, ' ')), manifest), 413, 'payload_too_large')
  assert.equal((await upload(to, streamed(Buffer.alloc(assetBytesMax, 1)), 'video/mp4')).status, 201)
  assertRefused(await upload(to, streamed(Buffer.alloc(assetBytesMax + 1, 2)), 'video/mp4'), 413, 'payload_too_large')
  assert.equal(await blobs(), before + 1)
})

test('a scene may have as many bytes as clients take of one', async () => {
  const type = 'application/vnd.service.scene'
  const bytes = Buffer.alloc(sceneBytesMax + 1, 3)
  assert.equal((await upload(to, streamed(bytes.subarray(1)), type)).status, 201)
  assertRefused(await upload(to, bytes, type), 413, 'payload_too_large')
})

test('so many files at once, and then 503 until one has arrived', async () => {
  const open: ReadableStreamDefaultController[] = []
  const waiting = Array.from({ length: uploadsAtOnceMax }, (_, n) => {
    const stream = new ReadableStream({
      start(controller) {
        controller.enqueue(new Uint8Array([n, 42]))
        open.push(controller)
      },
    })
    return upload(to, stream, png)
  })
  let refused = await upload(to, randomBytes(10), png)
  // Until all of them have been heard of.
  for (let tries = 0; refused.status !== 503 && tries < 200; tries++) refused = await upload(to, randomBytes(10), png)
  assertRefused(refused, 503, 'service_unavailable')
  assert.ok(Number(refused.headers.get('retry-after')) >= 1)
  for (const controller of open) controller.close()
  for (const { status } of await Promise.all(waiting)) assert.equal(status, 201)
  assert.equal((await upload(to, randomBytes(10), png)).status, 201)
})

test('an upload whose sender goes away leaves nothing that anybody sees, and its place is free again', async () => {
  const before = (await api.pool.query('select 1 from artefact')).length
  for (let n = 0; n < uploadsAtOnceMax + 1; n++) {
    const gone = new AbortController()
    const stream = new ReadableStream({ start: (controller) => controller.enqueue(new Uint8Array(300_000)) })
    const sent = fetch(`${api.url}/v1/artifacts`, {
      method: 'POST',
      headers: { authorization: `Bearer ${ws.key}`, 'content-type': png },
      body: stream,
      signal: gone.signal,
      duplex: 'half',
    } as RequestInit) // `duplex` is not in its type yet
    setTimeout(() => gone.abort(), 50)
    await assert.rejects(sent)
  }
  assert.equal((await upload(to, randomBytes(10), png)).status, 201)
  assert.equal((await api.pool.query('select 1 from artefact')).length, before + 1)
})

test("404 for a project that is not the caller's, before the file is read", async () => {
  const other = await api.workspace()
  const before = await blobs()
  assertRefused(await upload({ ...to, projectId: other.projectId }, randomBytes(10), png), 404, 'not_found')
  assert.equal(await blobs(), before)
  const missing = await upload({ ...to, key: 'sk_none' }, randomBytes(10), png)
  assertRefused(missing, 401, 'invalid_api_key')
})

test('what broke off or was known before is swept, and nothing else', async () => {
  await api.pool.query(`insert into artefact_blob default values`)
  const bytes = randomBytes(10)
  await upload(to, bytes, png)
  await forgetBrokenUploads(api.pool)
  const before = await blobs()
  await api.pool.query(`update artefact_blob set created_at = now() - interval '2 hours'`)
  await forgetBrokenUploads(api.pool)
  const artefacts = await api.pool.query('select blob_id from artefact')
  assert.equal(await blobs(), artefacts.length)
  assert.ok((await blobs()) < before)
})
