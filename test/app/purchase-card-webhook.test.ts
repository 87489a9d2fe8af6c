import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { after, describe, test } from 'node:test'
import fc from '../harness/random.ts'
import { startService } from '../harness/service.ts'
import { openCards } from './card-world.ts'
import { eventually, fetchBytes, type Headers } from './project.ts'

/** Whatever is sent to where Stripe sends: an answer that says whose fault it is, and never ours. Disposing fails if it logged one. */
const service = await startService()
const cards = await openCards(service)
after(async () => {
  await cards[Symbol.asyncDispose]()
  await service[Symbol.asyncDispose]()
})
const { store, webhook } = cards
const path = new URL(webhook).pathname

let events = 0
const nextId = () => `evt_any_${++events}`
const event = (id = nextId()) => ({ id, type: 'invoice.paid', data: { object: { id: 'in_nobody' } } })

const post = (body: string | Buffer, headers: Headers = {}) =>
  fetchBytes(service.url, 'POST', path, body, { 'content-type': 'application/json', ...headers })
/** Signed as it is, whatever it is. */
function signed(bytes: Buffer): Headers {
  const time = Math.floor(Date.now() / 1000)
  const v1 = createHmac('sha256', store.webhookSecret).update(`${time}.`).update(bytes).digest('hex')
  return { 'stripe-signature': `t=${time},v1=${v1}` }
}

const stored = async (id: string) =>
  (await service.pool.query('select from store_inbox where notification_id = $1', [id])).length

describe('signatures', () => {
  const about = { type: 'invoice.paid', object: 'in_1' }
  const send = (more: object) => store.send(webhook, { ...about, id: `evt_sig_${++events}`, ...more })
  const minutes = 60_000

  test('five minutes either way, and no more', async () => {
    for (const at of [-4 * minutes, 0, 4 * minutes]) assert.equal(await send({ at: Date.now() + at }), 200)
    for (const at of [-6 * minutes, 6 * minutes]) assert.equal(await send({ at: Date.now() + at }), 401)
  })

  test('401: another secret, none, and whatever is no signature', async () => {
    assert.equal(await send({ secret: 'whsec_other' }), 401)
    const now = Math.floor(Date.now() / 1000)
    for (const signature of [
      null,
      '',
      't=,v1=',
      `t=${now}`,
      `t=${now},v1=`,
      `t=${now},v1=${'0'.repeat(64)}`,
      `v1=${'0'.repeat(64)}`,
      ','.repeat(5000),
    ]) {
      assert.equal(await send({ signature }), 401, String(signature))
    }
  })

  test('401: bytes that were changed after they were signed, be it by a space', async () => {
    const id = `evt_bytes_${++events}`
    const raw = JSON.stringify({ id, type: 'invoice.paid', data: { object: { id: 'in_1' } } })
    const time = Math.floor(Date.now() / 1000)
    const v1 = createHmac('sha256', store.webhookSecret).update(`${time}.${raw}`).digest('hex')
    const signature = `t=${time},v1=${v1}`
    assert.equal(await send({ raw: `${raw} `, signature }), 401)
    assert.equal(await send({ raw, signature: `t=${time + 1},v1=${v1}` }), 401)
    assert.equal(await send({ raw, signature: `t=${time},v1=${'0'.repeat(64)},v1=${v1}` }), 200)
  })

  test('400: no event; 404: no app; 503: not configured', async () => {
    for (const raw of ['', '[]', '{', '{}', '{"id":"evt_1"}', '{"id":1,"type":"a","data":{"object":{}}}']) {
      assert.equal(await send({ raw }), 400, raw)
    }
    assert.equal(await store.send(`${service.url}/webhooks/stripe/app_none`, about), 404)
    const other = await cards.project.app('ios', 'test')
    assert.equal(await store.send(`${service.url}/webhooks/stripe/${other.id}`, about), 503)
  })
})

const text = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.constantFrom('', '\0', '\ud800', '__proto__', 'invoice.paid', 'x'.repeat(300), 'in_nobody'),
)
const json = fc.oneof(fc.jsonValue(), text, fc.double())
const body = fc.oneof(
  fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)),
  json.map((value) => Buffer.from(JSON.stringify(value))),
  fc
    .tuple(fc.constantFrom('id', 'type', 'data', 'object', 'extra'), json)
    .map(([name, value]) => Buffer.from(JSON.stringify({ ...event(), [name]: value }))),
  fc.tuple(fc.constantFrom('id', 'object', 'status', 'x'), json).map(([name, value]) => {
    return Buffer.from(JSON.stringify({ ...event(), data: { object: { id: 'in_nobody', [name]: value } } }))
  }),
  fc.array(fc.tuple(fc.nat(), fc.nat(255)), { minLength: 1, maxLength: 4 }).map((harm) => {
    const bytes = Buffer.from(JSON.stringify(event()))
    for (const [at, value] of harm) bytes[at % bytes.length] = value
    return bytes
  }),
)
const header = fc.oneof(
  fc.string({ unit: fc.constantFrom(...Array.from('tv10=,; abcdef0123456789-.')), maxLength: 200 }),
  fc.constantFrom('', 't=', 'v1=', 't=1e9,v1=00', `t=${'9'.repeat(12)},v1=${'0'.repeat(64)}`, 'v0=1'),
)

describe('any request', () => {
  test('of any bytes that Stripe signed is stored or is no event', async () => {
    const counts = new Map<number, number>()
    await fc.assert(
      fc.asyncProperty(body, async (bytes) => {
        const { status } = await post(bytes, signed(bytes))
        assert.ok(status === 200 || status === 400, `${status} for ${bytes.toString('latin1')}`)
        counts.set(status, (counts.get(status) ?? 0) + 1)
      }),
      { numRuns: 80 },
    )
    assert.equal(counts.size, 2, JSON.stringify([...counts]))
  })

  test('under any signature but that of Stripe is not stored', async () => {
    await fc.assert(
      fc.asyncProperty(header, async (signature) => {
        const id = nextId()
        const { status } = await post(JSON.stringify(event(id)), { 'stripe-signature': signature.trim() })
        assert.deepEqual([status, await stored(id)], [401, 0])
      }),
      { numRuns: 80 },
    )
  })

  test('in another coding or of another type is refused, or read as what it is', async () => {
    const types = fc.constantFrom('application/json', 'application/json; charset=utf-8', 'text/plain', 'a/b', '{}')
    const codings = fc.constantFrom('', 'gzip', 'identity', 'br')
    await fc.assert(
      fc.asyncProperty(types, codings, async (type, coding) => {
        const bytes = Buffer.from(JSON.stringify(event()))
        const headers = { ...signed(bytes), 'content-type': type, 'content-encoding': coding }
        const { status } = await post(bytes, headers)
        assert.ok([200, 400, 401, 415].includes(status), `${status} for ${type} ${coding}`)
      }),
      { numRuns: 30 },
    )
  })
})

test('a mebibyte is read, a byte more is not', async () => {
  const mebibyte = 1024 * 1024
  for (const [more, expected] of [
    [0, 200],
    [1, 413],
  ] as const) {
    const bare = JSON.stringify({ ...event(), pad: '' })
    const bytes = Buffer.from(JSON.stringify({ ...JSON.parse(bare), pad: 'x'.repeat(mebibyte - bare.length + more) }))
    assert.equal(bytes.length, mebibyte + more)
    assert.equal((await post(bytes, signed(bytes))).status, expected)
  }
})

test('of many at once with one id one is stored, and worked off once', async () => {
  const id = nextId()
  const bytes = Buffer.from(JSON.stringify(event(id)))
  const answers = await Promise.all(Array.from({ length: 20 }, () => post(bytes, signed(bytes))))
  assert.deepEqual([...new Set(answers.map(({ status }) => status))], [200])
  const [row] = await eventually(async () => {
    const rows = await service.pool.query<{ status: string; attempts: number }>(
      `select status, attempts from store_inbox where notification_id = $1 and status <> 'waiting'`,
      [id],
    )
    return rows.length > 0 && rows
  }, 15_000)
  assert.deepEqual(row, { status: 'ignored', attempts: 1 })
  assert.equal(await stored(id), 1)
})
