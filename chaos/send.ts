import { gzipSync } from 'node:zlib'
import { must } from '../src/kernel/assert.ts'
import type { Answer } from './record.ts'
import type { Turn } from './turns.ts'

/** Where to send, and as whom. */
export interface Access {
  /** Several ways to one service: each try takes the next. */
  urls: string[]
  /** Publishable keys of the apps of one project; each client uses one. */
  apiKeys: string[]
  secretKey: string
}

/** Shorter than replies are held back sometimes, so that late ones meet a repeat. */
const answerMsMax = 4000

/** What the tries of one turn share. */
export interface Tries {
  client: number
  /** Before this one. */
  count: number
  /** Once it was asked for: who was deleted is not found under a distinct id any more. */
  customerId?: string
}

/** One try of a turn. Throws where nothing is known afterwards; "not now" and a customer not there yet are `null`. */
export async function send(turn: Turn, access: Access, tries: Tries): Promise<Answer | null> {
  const { client, count } = tries
  const url = must(access.urls[(client + count) % access.urls.length], 'there is a way')
  const apiKey = must(access.apiKeys[client % access.apiKeys.length], 'there is a key')
  switch (turn.kind) {
    case 'event':
      return post(`${url}/event`, { apiKey, ...(turn.item.wire as object) }) // only batches carry what is no object
    case 'batch': {
      const batch = turn.items.map(({ wire }) => wire)
      const body = { apiKey, batch, ...(turn.historical && { historical_migration: true }) }
      return ask(`${url}/batch`, {
        method: 'POST',
        headers: { ...json, 'content-encoding': 'gzip' },
        body: gzipSync(JSON.stringify(body)),
      })
    }
    case 'spend': {
      const { customer, ...spend } = turn.spend
      return post(`${url}/feature/consume`, { apiKey, customerId: customer, featureId, ...spend })
    }
    case 'look':
      return post(`${url}/profile`, { apiKey, distinct_id: turn.distinctId })
    case 'grant': {
      const { customer, allowance, idempotencyKey } = turn
      const headers = { ...authorised(access), 'idempotency-key': idempotencyKey }
      const id = await customerId(url, access, customer, tries)
      return id === null ? null : post(`${url}/v1/customers/${id}/grants`, { feature: featureId, allowance }, headers)
    }
    case 'delete': {
      const id = await customerId(url, access, turn.distinctId, tries)
      return id === null ? null : ask(`${url}/v1/customers/${id}`, { method: 'DELETE', headers: authorised(access) })
    }
  }
}

/** The demo's metered Feature. */
export const featureId = 'exports'
const json = { 'content-type': 'application/json' }

export function authorised({ secretKey }: Pick<Access, 'secretKey'>): Record<string, string> {
  return { authorization: `Bearer ${secretKey}`, 'x-service-env': 'test' }
}

/** Null: nobody has this id yet, since its first event waits. */
async function customerId(url: string, access: Access, distinctId: string, tries: Tries): Promise<string | null> {
  if (tries.customerId !== undefined) return tries.customerId
  const path = `${url}/v1/customers/by_distinct_id/${encodeURIComponent(distinctId)}`
  const answer = await ask(path, { headers: authorised(access) })
  if (answer === null || answer.status === 404) return null
  tries.customerId = String((answer.body as { id: string }).id) // a customer, as documented
  return tries.customerId
}

function post(url: string, body: object, headers: Record<string, string> = {}): Promise<Answer | null> {
  return ask(url, { method: 'POST', headers: { ...json, ...headers }, body: JSON.stringify(body) })
}

async function ask(url: string, request: RequestInit): Promise<Answer | null> {
  const response = await fetch(url, { ...request, signal: AbortSignal.timeout(answerMsMax) })
  const body: unknown = await response.json()
  return response.status === 503 || response.status === 429 ? null : { status: response.status, body }
}
