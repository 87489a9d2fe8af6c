import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import { systemClock } from '../src/kernel/clock.ts'
import { counterDigits, customerOf, distinctIdOf, stampNumber } from './ids.ts'
import { eventsPerBatch, type RequestSpec } from './job.ts'

/** A request ready to be written, and the bytes of it that its answer must hold. */
export interface Prepared {
  readonly bytes: Buffer
  readonly needle: Buffer
}

/** Gives the n-th request of a round. What it gives is overwritten by the next call for the same slot. */
export type RequestSource = (n: number, slot: number) => Prepared

const nothing = Buffer.alloc(0)
const distinctIdDigits = 8
/** One event in ten sets a customer property. */
const directiveEvery = 10

/** Everything costly is done here, before the round: later calls only stamp digits into ready bytes. */
export async function requestSource(spec: RequestSpec, slots: number, etags: string[]): Promise<RequestSource> {
  switch (spec.kind) {
    case 'event': {
      const now = new Date(systemClock.now()).toISOString()
      const plain = templates(slots, () => stamped('/event', eventBody(spec, now, false), spec.idPrefix))
      const directive = templates(slots, () => stamped('/event', eventBody(spec, now, true), spec.idPrefix))
      return (n, slot) => (n % directiveEvery ? plain : directive)(n, slot, customerOf(n, spec.customers))
    }
    case 'batch':
      return batches(spec)
    case 'entitled': {
      const { apiKey, featureId } = spec
      const body = JSON.stringify({ apiKey, customerId: distinctIdOf(0), featureId, requiredBalance: 1 })
      const template = templates(slots, () => stamped('/entitled', body))
      return (n, slot) => template(n, slot, customerOf(n, spec.customers))
    }
    case 'consume': {
      const { apiKey, featureId, firstCustomer } = spec
      const operationId = `${spec.idPrefix}${'0'.repeat(counterDigits)}`
      const body = JSON.stringify({ apiKey, customerId: distinctIdOf(0), featureId, operationId, quantity: 1 })
      const template = templates(slots, () => stamped('/feature/consume', body, spec.idPrefix))
      return (n, slot) => template(n, slot, firstCustomer + customerOf(n, spec.customers))
    }
    case 'customer':
      return customerReads(spec)
    case 'profile':
      return profiles(spec, etags)
  }
}

/** One plain profile request for each customer, to learn the ETags from. */
export function profileRequests({ apiKey, customers }: { apiKey: string; customers: number }): Buffer[] {
  return Array.from({ length: customers }, (_, customer) => profileRequest(apiKey, customer, undefined))
}

function profiles(spec: RequestSpec & { kind: 'profile' }, etags: string[]): RequestSource {
  const madeUp = spec.etag === 'made_up' ? `"${'0'.repeat(43)}"` : undefined
  const requests = Array.from({ length: spec.customers }, (_, customer): Prepared => {
    const etag = etags[customer] ?? madeUp
    return { bytes: profileRequest(spec.apiKey, customer, etag), needle: Buffer.from(etag ?? '') }
  })
  return (n) => at(requests, customerOf(n, spec.customers))
}

/** The answer must hold the customer's id. */
function customerReads({ secretKey, customers }: RequestSpec & { kind: 'customer' }): RequestSource {
  const requests = Array.from({ length: customers }, (_, customer): Prepared => {
    const distinctId = distinctIdOf(customer)
    const head = [
      `GET /v1/customers?distinct_id=${distinctId} HTTP/1.1`,
      'Host: 127.0.0.1',
      `Authorization: Bearer ${secretKey}`,
      'X-Service-Env: test',
      '\r\n',
    ]
    return { bytes: Buffer.from(head.join('\r\n')), needle: Buffer.from(distinctId) }
  })
  return (n) => at(requests, customerOf(n, customers))
}

function profileRequest(apiKey: string, customer: number, etag: string | undefined): Buffer {
  const body = JSON.stringify({ apiKey, distinct_id: distinctIdOf(customer) })
  return post('/profile', Buffer.from(body), etag === undefined ? [] : [`If-None-Match: ${etag}`])
}

async function batches(spec: RequestSpec & { kind: 'batch' }): Promise<RequestSource> {
  const { apiKey, customers, bodies, again } = spec
  const now = new Date(systemClock.now()).toISOString()
  const compress = promisify(gzip)
  const requests: Prepared[] = []
  for (let made = 0; made < bodies; made++) {
    const batch = Array.from({ length: eventsPerBatch }, (_, i) => {
      const n = made * eventsPerBatch + i
      return {
        ...eventFields(spec.idPrefix, now, n % directiveEvery === 0),
        ...stampedFields(spec.idPrefix, n, customers),
      }
    })
    const body = await compress(JSON.stringify({ apiKey, batch }))
    requests.push({ bytes: post('/batch', body, ['Content-Encoding: gzip']), needle: nothing })
  }
  return (n) => at(requests, again ? n % bodies : n)
}

function stampedFields(prefix: string, n: number, customers: number): { uuid: string; distinct_id: string } {
  const uuid = `${prefix}${n.toString(16).padStart(counterDigits, '0')}`
  return { uuid, distinct_id: distinctIdOf(customerOf(n, customers)) }
}

function eventBody(spec: RequestSpec & { kind: 'event' }, now: string, directive: boolean): string {
  return JSON.stringify({ apiKey: spec.apiKey, ...eventFields(spec.idPrefix, now, directive) })
}

/** What a mobile client sends for one screen: a handful of properties of every type. */
function eventFields(prefix: string, timestamp: string, directive: boolean): Record<string, unknown> {
  const properties = { screen: 'library', source: 'bench', position: 3, price: 9.99, premium: false }
  return {
    event: 'bench_viewed',
    distinct_id: distinctIdOf(0),
    uuid: `${prefix}${'0'.repeat(counterDigits)}`,
    timestamp,
    properties: directive ? { ...properties, $set: { last_screen: 'library', theme: 'dark' } } : properties,
  }
}

/** One template for each slot: a request's bytes stay as they are until its answer has come. */
function templates(slots: number, make: () => Template): (n: number, slot: number, customer: number) => Prepared {
  const all = Array.from({ length: slots }, make)
  return (n, slot, customer) => {
    const template = at(all, slot)
    stampNumber(template.bytes, template.customerEnd, distinctIdDigits, customer, 10)
    if (template.idEnd > 0) stampNumber(template.bytes, template.idEnd, counterDigits, n, 16)
    return template
  }
}

interface Template extends Prepared {
  idEnd: number
  customerEnd: number
}

/** The answer must hold the request's id, or its customer when it has no id. */
function stamped(path: string, body: string, prefix?: string): Template {
  const bytes = post(path, Buffer.from(body), [])
  const customer = distinctIdOf(0)
  const id = prefix === undefined ? '' : `${prefix}${'0'.repeat(counterDigits)}`
  const idEnd = prefix === undefined ? 0 : bytes.indexOf(id) + id.length
  const customerEnd = bytes.indexOf(customer) + customer.length
  const needle =
    prefix === undefined
      ? bytes.subarray(customerEnd - customer.length, customerEnd)
      : bytes.subarray(idEnd - id.length, idEnd)
  return { bytes, idEnd, customerEnd, needle }
}

function post(path: string, body: Buffer, headers: string[]): Buffer {
  const head = [
    `POST ${path} HTTP/1.1`,
    'Host: 127.0.0.1',
    'Content-Type: application/json',
    ...headers,
    `Content-Length: ${body.length}`,
    '\r\n',
  ].join('\r\n')
  return Buffer.concat([Buffer.from(head), body])
}

function at<T>(list: T[], index: number): T {
  const item = list[index]
  if (item === undefined) throw new Error(`there is no request ${index}`)
  return item
}
