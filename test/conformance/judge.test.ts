import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { describe, test } from 'node:test'
import { type Exchange, judge } from './judge.ts'
import { altered, emptyProfile, profileOf, type Sample, trusted } from './samples/publish.ts'
import { welcome } from './samples/welcome.ts'

const requestId = 'req_1'
const rulesOf = (
  exchange: Partial<Exchange> & { headers?: Headers },
  body: Sample,
  more: Record<string, string> = {},
): string[] => {
  const bytes = body === undefined ? Buffer.alloc(0) : Buffer.from(JSON.stringify(body))
  const headers = new Headers({ 'x-request-id': requestId, ...more })
  const whole: Exchange = {
    method: 'POST',
    path: '/',
    sent: {},
    ifNoneMatch: undefined,
    status: 200,
    headers,
    bytes,
    ...exchange,
  }
  const { problems } = judge(whole, { keys: trusted, highest: new Map() })
  return problems.map(({ path, rule }) => `${path} ${rule}`)
}

/** An operation, what was asked, an answer that is right, and what may not be said instead: path and value. */
type Case = [path: string, sent: Sample, right: Sample, wrong: [string, Sample][]]

const failed = (index: number, event: string) => ({ index, event, error: 'no' })
const partial = {
  status: 'partial',
  accepted: 1,
  processed: 1,
  failed: 2,
  total: 3,
  queued: true,
  validationFailed: 1,
  rejectedFailed: 1,
  eventIds: ['a'],
  errors: [failed(0, 'x'), failed(2, '')],
}
const used = {
  operationId: 'op',
  customerId: 'ada',
  featureId: 'exports',
  accepted: true,
  type: 'metered',
  code: 'consumed',
  quantity: 3,
  balance: 4,
  unlimited: false,
  active: true,
  occurredAtMs: 5,
  idempotentReplay: true,
}
const access = {
  customerId: 'ada',
  featureId: 'exports',
  requiredBalance: 2,
  code: 'feature_found',
  allowed: true,
  unlimited: false,
  balance: 2,
  type: 'metered',
}
const feature = { id: 'pro', ext_id: 'pro', type: 'boolean', allowed: true, balance: null, unlimited: false }
const bought = {
  success: true,
  customer_id: 'cus',
  features: [feature],
  idempotent_replay: false,
  catalog_product: {
    id: 'p',
    store_product_id: 's',
    store_product_type: 'subscription',
    base_plan_id: null,
    purchase_option_id: null,
    offer_id: null,
  },
}

const cases: Case[] = [
  [
    '/batch',
    { batch: [{ event: 'x' }, { event: 'y' }, { event: 5 }] },
    partial,
    [
      ['total', 4],
      ['processed', 2],
      ['accepted', 2],
      ['failed', 1],
      ['status', 'success'],
      ['validationFailed', 0],
      ['errors', partial.errors.slice(1)],
      ['errors', [failed(0, 'x'), failed(0, 'x')]],
      ['errors', [failed(0, 'x'), failed(3, '')]],
      ['errors', [failed(0, 'y'), failed(2, '')]],
      ['errors.0.error', null],
      ['eventIds', ['a', 'b']],
      ['eventIds', undefined],
      ['enqueueFailed', 2],
      ['queued', undefined],
    ],
  ],
  [
    '/feature/consume',
    { operationId: 'op', customerId: 'ada', featureId: 'exports', quantity: 3 },
    used,
    [
      ['operationId', 'OP'],
      ['customerId', 'another id of ada'],
      ['featureId', 'credits'],
      ['quantity', 2],
      ['entityId', 'seat'],
      ['accepted', 'true'],
      ['balance', '4'],
      ['unlimited', true],
      ['occurredAtMs', undefined],
      ['idempotentReplay', null],
    ],
  ],
  [
    '/entitled',
    { customerId: 'ada', featureId: 'exports', requiredBalance: 2 },
    access,
    [
      ['allowed', false],
      ['balance', 1],
      ['requiredBalance', 1],
      ['featureId', 'credits'],
      ['type', 'credits'],
      ['unlimited', true],
      ['code', 'found'],
    ],
  ],
  [
    '/event',
    { event: 'x' },
    { status: 'ok', eventId: 'e', customerIdHint: 'h', accepted: 1, queued: true, payload: {} },
    [
      ['status', true],
      ['accepted', 2],
      ['payload', []],
      ['more', 1],
    ],
  ],
  [
    '/purchase',
    { type: 'playstore' },
    bought,
    [
      ['success', 1],
      ['customer_id', undefined],
      ['catalog_product', undefined],
      ['catalog_product.offer_id', undefined],
      ['features.0.ext_id', 'feat_1'],
    ],
  ],
  [
    '/app-store/intro-eligibility',
    {},
    { token: 'a-_.b.c' },
    [
      ['token', 'a.b'],
      ['token', 'a.b.'],
      ['token', 'a.b=.c'],
    ],
  ],
  [
    '/responses/save',
    { sequence: 5 },
    { status: 'stale', sequence: 7 },
    [
      ['sequence', 4],
      ['status', 'ok'],
      ['sequence', 5.5],
    ],
  ],
]

for (const [path, sent, right, wrong] of cases) {
  describe(`an answer of ${path}`, () => {
    test('is taken when it is right', () => assert.deepEqual(rulesOf({ path, sent }, right), []))
    for (const [place, to] of wrong) {
      test(`is refused with ${place} ${JSON.stringify(to)}`, () =>
        assert.notDeepEqual(rulesOf({ path, sent }, altered(right, place, to)), []))
    }
    test('is refused when it is compressed, without request id, or no strict JSON', () => {
      assert.notDeepEqual(rulesOf({ path, sent }, right, { 'content-encoding': 'gzip' }), [])
      assert.notDeepEqual(rulesOf({ path, sent }, right, { 'x-request-id': '' }), [])
      const twice = Buffer.from(JSON.stringify(right).replace('{', '{"more":1,"more":1,'))
      assert.notDeepEqual(rulesOf({ path, sent, bytes: twice }, right), [])
    })
  })
}

describe('an error', () => {
  const body = { code: 'invalid_request', message: 'No.', request_id: requestId }
  const refused = (status: number, more: Sample = {}, headers = {}, exchange: Partial<Exchange> = {}) =>
    rulesOf({ path: '/feature/consume', status, ...exchange }, { ...body, ...more }, headers)

  test('has a code, a message and the request id, and may have details and issues', () => {
    assert.deepEqual(refused(400), [])
    assert.deepEqual(refused(400, { details: { a: 1 }, issues: [{ path: 'a', message: 'b' }] }), [])
    const wrong: Sample[] = [
      { message: { a: 1 } },
      { code: 5 },
      { details: 'a' },
      { details: null },
      { issues: [{ path: 'a' }] },
    ]
    for (const more of [...wrong, { request_id: 'other' }, { error: {} }, { detail: 'a' }])
      assert.notDeepEqual(refused(400, more), [])
  })

  test('has detail where a purchase is refused', () => {
    assert.deepEqual(refused(400, { detail: 'a' }, {}, { path: '/purchase' }), [])
  })

  test('says when to try again with 429 and 503', () => {
    for (const status of [429, 503]) {
      assert.notDeepEqual(refused(status), [])
      assert.deepEqual(refused(status, {}, { 'retry-after': '1' }), [])
    }
  })

  test('has a status that clients treat as it is meant', () => {
    assert.notDeepEqual(refused(410, {}, {}, { path: '/batch' }), [])
    assert.notDeepEqual(refused(402), [])
    assert.notDeepEqual(refused(402, {}, {}, { sent: { purchase: {} } }), [])
    assert.notDeepEqual(refused(400, { code: 'operation_conflict' }), [])
    assert.deepEqual(refused(409, { code: 'operation_conflict' }), [])
    assert.notDeepEqual(refused(202), [])
  })
})

describe('a profile', () => {
  const tagOf = (body: Sample) =>
    `"${createHash('sha256')
      .update(JSON.stringify(body ?? null))
      .digest('base64url')}"`
  const authority = {
    'service-app-id': 'app_demo_ios',
    'service-app-environment': 'test',
    'cache-control': 'private, no-cache',
  }
  const answered = (body: Sample, headers: Sample = {}, more: Partial<Exchange> = {}) => {
    const all = Object.entries({ ...authority, etag: tagOf(body), ...headers }).filter(
      ([, value]) => value !== undefined,
    )
    return rulesOf({ path: '/profile', ...more }, body, Object.fromEntries(all) as Record<string, string>)
  }

  test('comes with its tag and the authority of its key', () => {
    for (const body of [emptyProfile(), profileOf([welcome()])]) assert.deepEqual(answered(body), [])
    for (const header of ['etag', ...Object.keys(authority)]) {
      assert.notDeepEqual(answered(emptyProfile(), { [header]: undefined }), [], header)
    }
    assert.notDeepEqual(answered(emptyProfile(), { etag: '"other"' }), [])
    assert.notDeepEqual(answered(emptyProfile(), { 'service-app-environment': 'prod' }), [])
    assert.notDeepEqual(answered(emptyProfile(), { 'service-app-id': 'x'.repeat(129) }), [])
  })

  test('of another namespace has its words throughout, and no entry `always`', () => {
    const acme = {
      'service-app-id': undefined,
      'service-app-environment': undefined,
      'acme-app-id': 'a',
      'acme-app-environment': 'test',
    }
    const body = { ...emptyProfile(), schemaVersion: 'acme.journey-plane-profile.v2' }
    assert.deepEqual(answered(body, acme), [])
    assert.notDeepEqual(answered(emptyProfile(), acme), [])
  })

  test('that is unchanged repeats the tag as it was sent, without a body', () => {
    const unchanged = (etag: string, ifNoneMatch: string | undefined, bytes = Buffer.alloc(0)) =>
      answered(undefined, { etag }, { status: 304, ifNoneMatch, bytes })
    assert.deepEqual(unchanged('"a"', '"a"'), [])
    assert.deepEqual(unchanged('W/"a"', '"b", W/"a"'), [])
    assert.notDeepEqual(unchanged('"a"', 'W/"a"'), [])
    assert.notDeepEqual(unchanged('"a"', '"b"'), [])
    assert.notDeepEqual(unchanged('"a"', undefined), [])
    assert.notDeepEqual(unchanged('"a"', '"a"', Buffer.from('{}')), [])
  })
})
