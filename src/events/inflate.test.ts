import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import test from 'node:test'
import { gzipSync } from 'node:zlib'
import fc from '../../test/harness/random.ts'
import { Refusal } from '../kernel/errors.ts'
import { inflateWhole } from './inflate.ts'

const MiB = 1024 * 1024
const content = Buffer.from(JSON.stringify({ batch: [{ event: 'a' }] }))
const whole = gzipSync(content)

/** The code it is refused with, or the content. */
async function outcome(body: Buffer, bytesMax = MiB): Promise<string> {
  try {
    return String(await inflateWhole(body, bytesMax))
  } catch (error) {
    assert.ok(error instanceof Refusal, String(error))
    return error.code
  }
}

/** The same member with another length in its trailer. */
function claiming(body: Buffer, bytes: number): Buffer {
  const forged = Buffer.from(body)
  forged.writeUInt32LE(bytes, forged.length - 4)
  return forged
}

/** The member with optional header fields: extra, name, comment and a header checksum nobody checks. */
function withHeaderFields(body: Buffer): Buffer {
  const header = Buffer.from(body.subarray(0, 10))
  header[3] = 2 | 4 | 8 | 16
  return Buffer.concat([
    header,
    Buffer.from([3, 0, 1, 2, 3]),
    Buffer.from('name\0comment\0'),
    Buffer.from([9, 9]),
    body.subarray(10),
  ])
}

const refused: [string, Buffer][] = [
  ['an empty body', Buffer.alloc(0)],
  ['plain JSON', content],
  ['nothing but a header', whole.subarray(0, 10)],
  ['a member with a byte after it', Buffer.concat([whole, Buffer.from([0])])],
  ['a member with zeros after it', Buffer.concat([whole, Buffer.alloc(512)])],
  ['two members', Buffer.concat([whole, whole])],
  ['an empty member before another', Buffer.concat([gzipSync(''), whole])],
  ['an empty member after another', Buffer.concat([whole, gzipSync('')])],
  ['a member that claims to be shorter', claiming(whole, content.length - 1)],
  ['a member that claims to be longer', claiming(whole, content.length + 1)],
  ['a bomb that claims to be small', claiming(gzipSync(Buffer.alloc(8 * MiB)), 100)],
  ['a claim that no deflate stream can keep', claiming(whole, 900_000)],
  ['a header of another method', Buffer.from(whole.map((byte, i) => (i === 2 ? 7 : byte)))],
  ['a header with reserved flags', Buffer.from(whole.map((byte, i) => (i === 3 ? 32 : byte)))],
  ['a wrong checksum', Buffer.from(whole.map((byte, i) => (i === whole.length - 8 ? byte ^ 1 : byte)))],
]
for (const [what, body] of refused) {
  test(`${what} is refused as unsupported_encoding`, async () => {
    assert.equal(await outcome(body), 'unsupported_encoding')
  })
}

test('every cut of a member is refused', async () => {
  for (let length = 0; length < whole.length; length++) {
    assert.equal(await outcome(whole.subarray(0, length)), 'unsupported_encoding')
  }
})

test('one whole member gives its content, whatever is in it', async () => {
  assert.equal(await outcome(whole), String(content))
  assert.equal(await outcome(gzipSync('')), '')
  assert.equal(await outcome(withHeaderFields(whole)), String(content))
  await fc.assert(
    fc.asyncProperty(fc.uint8Array({ maxLength: 5000 }), async (bytes) => {
      assert.deepEqual(await inflateWhole(gzipSync(bytes), 5000), Buffer.from(bytes))
    }),
    { numRuns: 100 },
  )
})

test('content at the limit is taken, one byte more is too large', async () => {
  const body = gzipSync(Buffer.alloc(MiB, 'x'))
  assert.equal((await inflateWhole(body, MiB)).length, MiB)
  assert.equal(await outcome(body, MiB - 1), 'payload_too_large')
})

test('64 KiB that inflate to 64 MiB are refused without inflating them', async () => {
  const bomb = gzipSync(Buffer.alloc(64 * MiB))
  const before = process.memoryUsage().arrayBuffers
  assert.equal(await outcome(bomb, 64 * MiB - 1), 'payload_too_large')
  assert.ok(process.memoryUsage().arrayBuffers - before < 16 * MiB)
})

test('bodies in flight together are bounded by what they claim, and a refused one can come again', async () => {
  // Enough bytes to make the claim believable; that they hold less is seen later.
  const body = claiming(gzipSync(randomBytes(MiB / 8)), 100 * MiB)
  const outcomes = await Promise.all(Array.from({ length: 6 }, () => outcome(body, 128 * MiB)))
  assert.equal(outcomes.filter((code) => code === 'service_unavailable').length, 1)
  assert.equal(outcomes.filter((code) => code === 'unsupported_encoding').length, 5)
  assert.equal(await outcome(body, 128 * MiB), 'unsupported_encoding')
})
