import { systemClock } from '../kernel/clock.ts'
import { storeAnswerBytesMax, storeCallMsMax, storeRetryAfterSMax } from '../kernel/limits.ts'
import { isStorableJson } from '../kernel/text.ts'

/** What a store said, and when it was asked, or that it said nothing we could read. Holds no address: those of Google Play carry purchase tokens. */
export type StoreAnswer =
  | { kind: 'answered'; status: number; body: unknown; retryAfterS: number | null; sentAt: number }
  /** No connection, no answer in time, too much of it, or a 200 that is no JSON, or none that can be stored. */
  | { kind: 'silent'; why: string }

export interface StoreRequest {
  method: 'GET' | 'POST' | 'PUT'
  url: string
  headers?: Record<string, string>
  body?: string
}

/**
 * One call, of at most three seconds; one more after a silence or a 5xx, unless `signal` ends first. Follows no redirects: a
 * host that sends us elsewhere is not the store.
 */
export async function callStore(request: StoreRequest, signal: AbortSignal): Promise<StoreAnswer> {
  const answer = await callOnce(request, signal)
  const isTrouble = answer.kind === 'silent' || answer.status >= 500
  return isTrouble && !signal.aborted ? callOnce(request, signal) : answer
}

async function callOnce({ method, url, headers = {}, body }: StoreRequest, signal: AbortSignal): Promise<StoreAnswer> {
  const sentAt = systemClock.now()
  try {
    const response = await fetch(url, {
      ...{
        method,
        headers,
        redirect: 'manual',
        signal: AbortSignal.any([signal, AbortSignal.timeout(storeCallMsMax)]),
      },
      ...(body === undefined ? {} : { body }),
    })
    const { status } = response
    const text = await readBounded(response)
    if (text === undefined) return { kind: 'silent', why: 'the answer is too large' }
    const parsed = parse(text)
    if (status === 200 && parsed === undefined && text !== '') return { kind: 'silent', why: 'the answer is no JSON' }
    if (status === 200 && !isStorableJson(parsed)) return { kind: 'silent', why: 'a text of it cannot be stored' }
    return { kind: 'answered', status, body: parsed, retryAfterS: seconds(response.headers.get('retry-after')), sentAt }
  } catch (error) {
    return { kind: 'silent', why: nameOf(error) }
  }
}

async function readBounded(response: Response): Promise<string | undefined> {
  const parts: Uint8Array[] = []
  let bytes = 0
  for await (const part of response.body ?? []) {
    bytes += part.byteLength
    // Leaving the loop cancels the stream, and with it the connection.
    if (bytes > storeAnswerBytesMax) return undefined
    parts.push(part)
  }
  return Buffer.concat(parts).toString()
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Of a `Retry-After`: seconds, or the instant in Unix milliseconds that the App Store sends. */
function seconds(header: string | null): number | null {
  if (header === null || !/^\d{1,13}$/.test(header)) return null
  const value = Number(header)
  const wait = value > epochFrom ? Math.ceil((value - systemClock.now()) / 1000) : value
  return Math.min(Math.max(wait, 1), storeRetryAfterSMax)
}

/** No wait is that long, and no instant of these days that early. */
const epochFrom = 1e12

/** Messages of the HTTP client name the address; their kind does not. */
function nameOf(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown'
  const { code } = (error.cause ?? error) as { code?: unknown } // of a socket, when it is one
  return error.name === 'TypeError' ? `no connection${typeof code === 'string' ? ` (${code})` : ''}` : error.name
}
