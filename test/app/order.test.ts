import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, describe, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { batchBodyBytesMax, bodyBytesMax, eventBodyBytesMax, evidenceBodyBytesMax } from '../../src/kernel/limits.ts'
import { startService } from '../harness/service.ts'
import type { Answer, Body } from './answers.ts'
import { type App, anEvent, assertRefused, openProject, send } from './project.ts'

const service = await startService()
after(() => service[Symbol.asyncDispose]())
const project = await openProject(service)
const app = await project.app()
await project.feature('exports')
await project.customer('gone')
await project.tombstone('gone')
await project.grant('ada', { feature: 'exports', allowance: 5 })
const usage = { customerId: 'ada', featureId: 'exports', operationId: 'first', quantity: 1 }
await app.post('/feature/consume', usage)

/** One thing that is wrong with a request, in the order in which it is found. */
const defects = ['size', 'type', 'encoding', 'json', 'key', 'scope', 'field', 'customer', 'operation'] as const
type Defect = (typeof defects)[number]

interface Operation {
  bytesMax: number
  gzip?: boolean
  good: (app: App) => Record<string, unknown>
  field: Record<string, unknown>
  customer?: Record<string, unknown>
  /** What the operation itself refuses, and how. */
  operation?: { body: Record<string, unknown>; status: number; code: string }
}

const operations: Record<string, Operation> = {
  '/profile': {
    bytesMax: bodyBytesMax,
    good: () => ({ distinct_id: 'ada' }),
    field: { locale: 7 },
    customer: { distinct_id: 'gone' },
  },
  '/event': {
    bytesMax: eventBodyBytesMax,
    good: () => anEvent('ada'),
    field: { timestamp: 'yesterday' },
    customer: { distinct_id: 'gone' },
  },
  '/batch': {
    bytesMax: batchBodyBytesMax,
    gzip: true,
    good: () => ({ batch: [anEvent('ada')] }),
    field: { batch: [] },
  },
  '/entitled': {
    bytesMax: bodyBytesMax,
    good: () => ({ customerId: 'ada', featureId: 'exports' }),
    field: { requiredBalance: 0 },
    customer: { customerId: 'gone' },
    operation: { body: { featureId: 'nothing' }, status: 404, code: 'feature_not_found' },
  },
  '/feature/consume': {
    bytesMax: evidenceBodyBytesMax,
    good: () => ({ ...usage }),
    field: { mode: 'spend' },
    customer: { customerId: 'gone' },
    operation: { body: { quantity: 2 }, status: 409, code: 'operation_conflict' },
  },
}

function outcomeOf(operation: Operation, defect: Defect): [status: number, code: string] {
  switch (defect) {
    case 'size':
      return [413, 'payload_too_large']
    case 'type':
    case 'field':
      return [400, 'invalid_request']
    case 'encoding':
      return [400, 'unsupported_encoding']
    case 'json':
      return [400, 'invalid_json']
    case 'key':
      return [401, 'invalid_api_key']
    case 'scope':
      return [403, 'scope_mismatch']
    case 'customer':
      return [410, 'customer_deleted']
    case 'operation':
      return [operation.operation?.status ?? 0, operation.operation?.code ?? '']
    default:
      return defect satisfies never
  }
}

function ask(path: string, operation: Operation, wrong: Set<Defect>): Promise<Answer> {
  const body = {
    apiKey: wrong.has('key') ? 'pk_test_nobody' : app.key,
    ...operation.good(app),
    ...(wrong.has('field') ? operation.field : {}),
    ...(wrong.has('operation') ? operation.operation?.body : {}),
    ...(wrong.has('customer') ? operation.customer : {}),
  }
  const text = Buffer.from(`${JSON.stringify(body)}${wrong.has('json') ? ',' : ''}`)
  const encoded = operation.gzip ? gzipSync(text) : text
  // White space after the value is legal JSON, and noise after gzip is only looked at when it is read.
  const filler = operation.gzip ? randomBytes(operation.bytesMax) : Buffer.alloc(operation.bytesMax, ' ')
  const encoding = wrong.has('encoding') ? 'br' : operation.gzip ? 'gzip' : ''
  return send(service.url, 'POST', path, wrong.has('size') ? Buffer.concat([encoded, filler]) : encoded, {
    'content-type': wrong.has('type') ? 'text/plain' : 'application/json',
    'content-encoding': encoding,
    ...(wrong.has('scope') ? { 'service-app-environment': 'live' } : {}),
  })
}

for (const [path, operation] of Object.entries(operations)) {
  const possible = defects.filter((defect) => {
    return (defect !== 'customer' || operation.customer) && (defect !== 'operation' || operation.operation)
  })
  describe(`POST ${path} with two defects is answered for the one that is looked for first`, () => {
    for (const [i, first] of possible.entries()) {
      test(`${first}: ${outcomeOf(operation, first).join(' ')}`, async () => {
        for (const second of possible.slice(i)) {
          const answer = await ask(path, operation, new Set([first, second]))
          assertRefused(answer, ...outcomeOf(operation, first))
        }
      })
    }
  })
}

test('a request with every defect is too large, and what is left decides as they are mended one by one', async () => {
  for (const [path, operation] of Object.entries(operations)) {
    const wrong = new Set(defects)
    for (const defect of defects) {
      const applies = (defect !== 'customer' || operation.customer) && (defect !== 'operation' || operation.operation)
      if (applies) assertRefused(await ask(path, operation, wrong), ...outcomeOf(operation, defect))
      wrong.delete(defect)
    }
  }
})

test('a body that is too large is that, whatever type it has', async () => {
  for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'json', '']) {
    const body = Buffer.alloc(bodyBytesMax + 1, ' ')
    const answer = await send(service.url, 'POST', '/profile', body, { 'content-type': type })
    assertRefused(answer, 413, 'payload_too_large')
  }
})

test('a body whose length is not told beforehand is too large all the same, whatever its type', async () => {
  for (const type of ['application/json', 'text/plain']) {
    const response = await fetch(`${service.url}/profile`, {
      method: 'POST',
      headers: { 'content-type': type },
      body: new Blob([Buffer.alloc(bodyBytesMax + 1, ' ')]).stream(),
      duplex: 'half',
    })
    const body: Body = await response.json()
    assert.deepEqual([response.status, body.code], [413, 'payload_too_large'])
  }
})
