import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, describe, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { jsonDepthMax, jsonValuesMax } from '../../src/kernel/limits.ts'
import { startService } from '../harness/service.ts'
import type { Answer } from './answers.ts'
import { anEvent, assertRefused, openProject, send } from './project.ts'

const service = await startService()
after(() => service[Symbol.asyncDispose]())
const project = await openProject(service)
const app = await project.app()
await project.feature('exports')

/** A good body of each operation, and whether it takes fields it does not know. */
const operations = {
  '/profile': { gzip: false, closed: false, body: () => ({ distinct_id: 'ada' }) },
  '/event': { gzip: false, closed: false, body: () => anEvent('ada') },
  '/batch': { gzip: true, closed: false, body: () => ({ batch: [anEvent('ada')] }) },
  '/entitled': { gzip: false, closed: true, body: () => ({ customerId: 'ada', featureId: 'exports' }) },
  '/feature/consume': {
    gzip: false,
    closed: true,
    body: () => ({ customerId: 'ada', featureId: 'exports', operationId: randomUUID(), quantity: 1 }),
  },
} as const
type Path = keyof typeof operations
const paths = Object.keys(operations) as Path[] // the keys of a literal

function ask(path: Path, body: string | Buffer, type = 'application/json'): Promise<Answer> {
  const { gzip } = operations[path]
  const encoding = gzip ? 'gzip' : ''
  const bytes = gzip ? gzipSync(body) : body
  return send(service.url, 'POST', path, bytes, { 'content-type': type, 'content-encoding': encoding })
}

const good = (path: Path) => JSON.stringify({ apiKey: app.key, ...operations[path].body() })
/** The good body with one more field, as text. */
const withField = (path: Path, field: string) => `${good(path).slice(0, -1)},${field}}`

for (const path of paths) {
  const { closed } = operations[path]
  const unknownField = (answer: Answer) => {
    if (closed) assertRefused(answer, 400, 'unknown_field')
    else assert.equal(answer.status, 200, JSON.stringify(answer.body))
  }

  describe(`POST ${path}: the body`, () => {
    test('is JSON', async () => {
      const whole = good(path)
      const broken = [
        ...['', ' ', '{', '}', '{"apiKey"}', '{apiKey:1}', "{'apiKey':'a'}", '{"a":01}', '{"a":NaN}', '{"a":Infinity}'],
        ...['{"a":+1}', '{"a":1.}', '{"a":.5}', '{"a":"\t"}', '{"a":"\\x"}', '{"a":"\\u12"}', 'undefined', '<a/>'],
        ...[`${whole},`, `${whole}{}`, `${whole}\0`, whole.slice(0, -1), `/**/${whole}`, whole.replace(',', ',,')],
        ...[whole.replace('}', ',}'), `\u00a0${whole}`],
      ]
      for (const body of broken) assertRefused(await ask(path, body), 400, 'invalid_json')
    })

    test('is an object', async () => {
      for (const body of ['[]', `[${good(path)}]`, '"a"', '1', 'true', 'null', '[[]]']) {
        assertRefused(await ask(path, body), 400, 'invalid_json')
      }
    })

    test('may have white space around it', async () => {
      assert.equal((await ask(path, ` \r\n\t${good(path)}\n `)).status, 200)
    })

    test('is UTF-8 without byte order mark', async () => {
      const text = withField(path, '"note":"é"')
      const bytes = Buffer.from(text)
      assert.ok(bytes.includes('é'))
      unknownField(await ask(path, bytes))
      const wrong = [
        Buffer.from(text, 'latin1'),
        Buffer.from(text, 'utf16le'),
        Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), bytes]),
        ...[[0xff], [0xc0, 0xaf], [0xed, 0xa0, 0x80], [0xf4, 0x90, 0x80, 0x80], [0xe2, 0x82]].map((sequence) =>
          Buffer.concat([Buffer.from(text.slice(0, -2)), Buffer.from(sequence), Buffer.from('"}')]),
        ),
      ]
      for (const body of wrong) assertRefused(await ask(path, body), 400, 'invalid_json')
    })

    test(`is at most ${jsonDepthMax} arrays and objects deep, itself counted`, async () => {
      const nested = (levels: number) => [
        withField(path, `"a":${'['.repeat(levels)}${']'.repeat(levels)}`),
        withField(path, `"a":${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`),
      ]
      for (const body of nested(jsonDepthMax - 1)) unknownField(await ask(path, body))
      for (const body of nested(jsonDepthMax)) assertRefused(await ask(path, body), 400, 'invalid_json')
      for (const body of nested(100_000)) assertRefused(await ask(path, body), 400, 'invalid_json')
    })

    test('is not deep because brackets stand in a text', async () => {
      unknownField(await ask(path, withField(path, `"a":"${'[{'.repeat(100)}\\"${'[{'.repeat(100)}"`)))
    })

    test('may have a field twice: the last one counts', async () => {
      assertRefused(await ask(path, withField(path, '"apiKey":"pk_test_nobody"')), 401, 'invalid_api_key')
      assert.equal((await ask(path, good(path).replace('{', '{"apiKey":"pk_test_nobody",'))).status, 200)
    })

    test('has no field by way of a prototype', async () => {
      const inherited = `"__proto__":${good(path)}`
      assertRefused(await ask(path, `{${inherited}}`), 401, 'invalid_api_key')
      const customer = path === '/batch' ? 'batch' : closed ? 'customerId' : 'distinct_id'
      const { [customer]: _, ...rest } = JSON.parse(good(path)) as Record<string, unknown>
      assert.equal((await ask(path, `${JSON.stringify(rest).slice(0, -1)},${inherited}}`)).status, 400)
    })

    test('may carry keys that mean something to JavaScript, as plain unknown fields', async () => {
      for (const key of ['__proto__', 'constructor', 'prototype', 'toString', 'hasOwnProperty', 'then', 'toJSON']) {
        unknownField(await ask(path, withField(path, `"${key}":{"prototype":{"polluted":true},"apiKey":1}`)))
      }
      assert.equal(Object.hasOwn(Object.prototype, 'polluted'), false)
    })
  })

  describe(`POST ${path}: Content-Type`, () => {
    test('is application/json in any case, with or without parameters', async () => {
      const types = [
        'application/json',
        'Application/JSON',
        'application/json; charset=utf-8',
        'application/json;v="1"',
      ]
      for (const type of types) assert.equal((await ask(path, good(path), type)).status, 200, type)
    })

    test('is required, and no other is taken', async () => {
      const types = ['text/plain', 'text/json', 'application/ld+json', 'application/jsonp', 'application/x-json', '*/*']
      const forms = [
        'application/x-www-form-urlencoded',
        'multipart/form-data; boundary=x',
        'json',
        'application/json, a/b',
        '',
      ]
      for (const type of [...types, ...forms]) {
        const answer = await ask(path, good(path), type)
        assertRefused(answer, 400, 'invalid_request')
        assert.match(answer.body.message, /Content-Type/)
      }
    })
  })
}

test('no body at all is a bad request', async () => {
  for (const path of paths) {
    assertRefused(await send(service.url, 'POST', path, undefined), 400, 'invalid_request')
  }
})

describe('a small body that would take the parser long', () => {
  test('is refused before it is parsed, by its depth', async () => {
    const { maxRSS: before } = process.resourceUsage()
    const body = `${good('/batch').slice(0, -1)},"a":${'['.repeat(64 * 1024 * 1024)}`
    assertRefused(await ask('/batch', body), 400, 'invalid_json')
    const grownKiB = process.resourceUsage().maxRSS - before
    assert.ok(grownKiB < 1024 * 1024, `it took ${grownKiB} KiB: parsing it would take three GiB`)
  })

  test(`is refused before it is parsed, by its ${jsonValuesMax} values`, async () => {
    for (const value of ['[]', '{}', '0', '{"a":0}']) {
      const body = withField('/batch', `"a":[${`${value},`.repeat(jsonValuesMax)}0]`)
      assertRefused(await ask('/batch', body), 413, 'payload_too_large')
    }
  })

  test('is taken up to that many values', async () => {
    const counted = good('/batch').match(/[,[{]/g)?.length ?? 0
    const filled = (values: number) => withField('/batch', `"a":[${'0,'.repeat(values - counted - 3)}0]`)
    assert.equal((await ask('/batch', filled(jsonValuesMax))).status, 200)
    assertRefused(await ask('/batch', filled(jsonValuesMax + 1)), 413, 'payload_too_large')
  })
})
