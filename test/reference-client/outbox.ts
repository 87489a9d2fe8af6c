import { gzipSync } from 'node:zlib'
import { isObject } from '../conformance/check.ts'
import { listOf } from './condition.ts'

export interface Item {
  event: string
  distinct_id: string
  timestamp: string
  idempotency_key: string
  properties: Record<string, unknown>
  journeyOrigin?: Record<string, unknown>
}

/** Sends a body and gives the answer, or throws as a network does. */
export type Transport = (path: string, body: Uint8Array | string, headers: Record<string, string>) => Promise<Reply>

export interface Reply {
  status: number
  headers: Headers
  bytes: Uint8Array
}

const itemsMax = 50

/**
 * Sends the oldest items; gives those that stay. A reply that does not add up acknowledges nothing, and neither does one that
 * never came: the same items go again, under the same ids.
 */
export async function flush(
  items: readonly Item[],
  apiKey: string,
  transport: Transport,
  count = itemsMax,
): Promise<Item[]> {
  const batch = items.slice(0, Math.min(count, itemsMax))
  if (batch.length === 0) return [...items]
  const headers = { 'content-type': 'application/json', 'content-encoding': 'gzip' }
  const reply = await transport('/batch', gzipSync(JSON.stringify({ apiKey, batch })), headers).catch(() => undefined)
  if (reply !== undefined && [400, 413, 422].includes(reply.status)) {
    // A body that is bad as a whole: halves are tried, and a single item that is still refused is dropped.
    return batch.length === 1 ? items.slice(1) : flush(items, apiKey, transport, Math.ceil(batch.length / 2))
  }
  const failed = reply === undefined || reply.status >= 300 ? undefined : failedOf(reply.bytes, batch.length)
  if (failed === undefined) return [...items]
  return [...batch.filter((_, index) => failed.has(index)), ...items.slice(batch.length)]
}

/** The indexes that were refused; undefined when the reply does not add up. */
export function failedOf(bytes: Uint8Array, submitted: number): Set<number> | undefined {
  const body: unknown = JSON.parse(Buffer.from(bytes).toString())
  if (!isObject(body) || typeof body.status !== 'string') return undefined
  const { total, processed, failed } = body
  const errors = listOf(body.errors).filter(isObject)
  const indexes = new Set(errors.map(({ index }) => Number(index)))
  const counted =
    total === submitted &&
    typeof processed === 'number' &&
    failed === submitted - processed &&
    errors.length === failed &&
    indexes.size === failed
  const named = errors.every(
    ({ index, event, error }) =>
      Number.isInteger(index) &&
      Number(index) >= 0 &&
      Number(index) < submitted &&
      typeof event === 'string' &&
      typeof error === 'string',
  )
  return counted && named ? indexes : undefined
}
