import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import {
  brotliCompressSync,
  crc32,
  deflateRawSync,
  deflateSync,
  gunzipSync,
  gzipSync,
  zstdCompressSync,
} from 'node:zlib'
import { batchBodyBytesMax, batchInflatedBytesMax } from '../../src/kernel/limits.ts'
import { startService } from '../harness/service.ts'
import type { Answer } from './answers.ts'
import { anEvent, assertRefused, openProject, send } from './project.ts'

const service = await startService()
after(() => service[Symbol.asyncDispose]())
const project = await openProject(service)
const app = await project.app()

const one = () => JSON.stringify({ apiKey: app.key, batch: [anEvent('ada')] })
const sendBytes = (bytes: Buffer, encoding: string): Promise<Answer> =>
  send(service.url, 'POST', '/batch', bytes, { 'content-type': 'application/json', 'content-encoding': encoding })

describe('POST /batch is compressed with gzip', () => {
  test('in any spelling of the name', async () => {
    for (const name of ['gzip', 'Gzip', 'GZIP', 'x-gzip', 'X-GZip', ' gzip ']) {
      assert.equal((await sendBytes(gzipSync(one()), name)).status, 200, name)
    }
  })

  test('and nothing else', async () => {
    const text = Buffer.from(one())
    const others: [Buffer, string][] = [
      [text, ''],
      [text, 'identity'],
      [text, 'gzip'],
      [gzipSync(text), ''],
      [gzipSync(text), 'identity'],
      [deflateSync(text), 'deflate'],
      [brotliCompressSync(text), 'br'],
      [zstdCompressSync(text), 'zstd'],
      [gzipSync(gzipSync(text)), 'gzip, gzip'],
      [deflateSync(text), 'gzip'],
      [deflateRawSync(text), 'gzip'],
      [Buffer.alloc(0), 'gzip'],
    ]
    for (const [bytes, name] of others) {
      assertRefused(await sendBytes(bytes, name), 400, 'unsupported_encoding')
    }
  })

  test('in one whole member: not cut, joined, damaged or followed by anything', async () => {
    const whole = gzipSync(one())
    const changed = (at: number) => {
      const bytes = Buffer.from(whole)
      bytes.writeUInt8(bytes.readUInt8(at) ^ 0x55, at)
      return bytes
    }
    const broken = [
      ...[1, 4, 8, 9, 20].map((bytes) => whole.subarray(0, -bytes)),
      whole.subarray(0, 10),
      Buffer.concat([whole, Buffer.from([0])]),
      Buffer.concat([whole, Buffer.from('more')]),
      Buffer.concat([whole, whole]),
      Buffer.concat([whole, gzipSync('')]),
      ...[0, 1, 2, whole.length - 8, whole.length - 5, whole.length - 4].map(changed),
    ]
    for (const bytes of broken) assertRefused(await sendBytes(bytes, 'gzip'), 400, 'unsupported_encoding')
  })

  test('and may carry the fields of a gzip header', async () => {
    const bytes = member(Buffer.from(one()), { comment: 'sent by a test' })
    assert.equal(gunzipSync(bytes).toString().startsWith('{"apiKey"'), true)
    assert.equal((await sendBytes(bytes, 'gzip')).status, 200)
  })

  test('what is inside is held to JSON', async () => {
    assertRefused(await sendBytes(gzipSync('{'), 'gzip'), 400, 'invalid_json')
    assertRefused(await sendBytes(gzipSync(''), 'gzip'), 400, 'invalid_json')
  })

  test('a member that says it is larger than it is, or smaller, is not whole', async () => {
    for (const claimed of [0, 1, 10_000, 1_000_000, 0xffffffff]) {
      assertRefused(await sendBytes(member(Buffer.from(one()), { claimed }), 'gzip'), 400, 'unsupported_encoding')
    }
    const bomb = member(Buffer.alloc(64 * 1024 * 1024), { claimed: 100 })
    assertRefused(await sendBytes(bomb, 'gzip'), 400, 'unsupported_encoding')
  })
})

describe('POST /batch, 413', () => {
  test('more than 16 MiB compressed', async () => {
    const ofSize = (bytes: number) => {
      const content = Buffer.from(one())
      const bare = member(content, { comment: '' }).length
      return member(content, { comment: 'x'.repeat(bytes - bare) })
    }
    assert.equal(ofSize(batchBodyBytesMax).length, batchBodyBytesMax)
    assert.equal((await sendBytes(ofSize(batchBodyBytesMax), 'gzip')).status, 200)
    assertRefused(await sendBytes(ofSize(batchBodyBytesMax + 1), 'gzip'), 413, 'payload_too_large')
  })

  test('more than 128 MiB decompressed', async () => {
    const ofSize = (bytes: number) => {
      const text = one()
      return gzipSync(Buffer.alloc(bytes, ' ').fill(text, 0, text.length), { level: 1 })
    }
    assert.equal((await sendBytes(ofSize(batchInflatedBytesMax), 'gzip')).status, 200)
    assertRefused(await sendBytes(ofSize(batchInflatedBytesMax + 1), 'gzip'), 413, 'payload_too_large')
  })

  test('a bomb', async () => {
    const bomb = gzipSync(Buffer.alloc(batchInflatedBytesMax * 2), { level: 1 })
    assertRefused(await sendBytes(bomb, 'gzip'), 413, 'payload_too_large')
  })
})

/** A gzip member by hand: with a comment in its header, or with a trailer that claims another length. */
function member(
  content: Buffer,
  { comment, claimed = content.length }: { comment?: string; claimed?: number },
): Buffer {
  const header = Buffer.from([0x1f, 0x8b, 8, comment === undefined ? 0 : 16, 0, 0, 0, 0, 0, 255])
  const trailer = Buffer.alloc(8)
  trailer.writeUInt32LE(crc32(content), 0)
  trailer.writeUInt32LE(claimed, 4)
  const text = comment === undefined ? '' : `${comment}\0`
  return Buffer.concat([header, Buffer.from(text), deflateRawSync(content), trailer])
}
