import { createHmac } from 'node:crypto'
import { type LookupAddress, type LookupOptions, lookup as resolve } from 'node:dns'
import { request as plainRequest } from 'node:http'
import { request as secureRequest } from 'node:https'
import { isIP } from 'node:net'
import type { Json } from '../../events/index.ts'
import { webhookAnswerBytesMax, webhookRetryAfterMsMax } from '../../kernel/limits.ts'
import { isPrivateAddress } from './address.ts'

export interface Post {
  url: string
  secret: string
  /** `journeyId:rev:index`: the same for every try. */
  key: string
  /** JSON. */
  body: string
  timeoutMs: number
  /** Unix milliseconds, signed: a receiver can refuse old ones. */
  at: number
  /** Also to addresses of the own network. */
  allowPrivate: boolean
}

/** `again`: another try may succeed, after `waitMs` at the earliest where the receiver said so. */
export type PostResult =
  | { ok: true; body: Json | undefined }
  | { ok: false; again: boolean; why: string; waitMs?: number }

/** One try. Never throws; follows no redirects. */
export function post({ url, secret, key, body, timeoutMs, at, allowPrivate }: Post): Promise<PostResult> {
  const target = new URL(url)
  const host = target.hostname.replace(/^\[|\]$/g, '')
  if (!allowPrivate && isIP(host) !== 0 && isPrivateAddress(host)) {
    return Promise.resolve({ ok: false, again: false, why: 'private address' })
  }
  const { promise, resolve: settle } = Promise.withResolvers<PostResult>()
  const send = target.protocol === 'https:' ? secureRequest : plainRequest
  const sending = send(
    target,
    {
      method: 'POST',
      headers: headersOf({ secret, key, body, at }),
      // No connection is kept: an address that was judged is the one that is used.
      agent: false,
      lookup: allowPrivate ? resolve : publicLookup,
      signal: AbortSignal.timeout(timeoutMs),
    },
    (answer) => {
      const parts: Buffer[] = []
      let bytes = 0
      answer.on('data', (part: Buffer) => {
        bytes += part.length
        if (bytes <= webhookAnswerBytesMax) parts.push(part)
        else answer.destroy()
      })
      answer.on('error', () => {})
      // Whole, cut or broken off: the status was told.
      answer.on('close', () => {
        const result = resultOf(answer.statusCode ?? 0, bytes, Buffer.concat(parts))
        const waitMs = askedMs(answer.headers['retry-after'], at)
        settle(result.ok || waitMs === null ? result : { ...result, waitMs })
      })
    },
  )
  sending.on('error', (error) => {
    settle({ ok: false, again: !(error instanceof PrivateAddress), why: error.message })
  })
  sending.end(body)
  return promise
}

/** By the scheme of https://www.standardwebhooks.com, so that receivers find libraries for it. */
export function headersOf({ secret, key, body, at }: Pick<Post, 'secret' | 'key' | 'body' | 'at'>) {
  const timestamp = String(Math.floor(at / 1000))
  const seed = Buffer.from(secret.slice('whsec_'.length), 'base64')
  const signature = createHmac('sha256', seed).update(`${key}.${timestamp}.${body}`).digest('base64')
  return {
    'content-type': 'application/json',
    'content-length': String(Buffer.byteLength(body)),
    'user-agent': 'Turnpike',
    'idempotency-key': key,
    'webhook-id': key,
    'webhook-timestamp': timestamp,
    'webhook-signature': `v1,${signature}`,
  }
}

/** Statuses that say: not now. Every other 4xx is an answer. */
const notNow = new Set([408, 409, 421, 425, 429])

function resultOf(status: number, bytes: number, body: Buffer): PostResult {
  if (status < 200 || status > 299) {
    return { ok: false, again: status >= 500 || notNow.has(status), why: `status ${status}` }
  }
  // A longer answer than anybody reads is a success without one.
  return { ok: true, body: bytes > webhookAnswerBytesMax ? undefined : jsonOf(body) }
}

/** Of a `Retry-After`, in seconds or as a date: at most an hour. Null: it asks for nothing. */
export function askedMs(header: string | undefined, now: number): number | null {
  const text = header?.trim() ?? ''
  const ms = /^\d+(\.\d+)?$/.test(text) ? Number(text) * 1000 : Date.parse(text) - now
  return ms > 0 ? Math.min(ms, webhookRetryAfterMsMax) : null
}

function jsonOf(body: Buffer): Json | undefined {
  try {
    return JSON.parse(body.toString()) as Json // whatever JSON it is
  } catch {
    return undefined
  }
}

class PrivateAddress extends Error {}

type Found = (error: Error | null, address: string | LookupAddress[], family?: number) => void

/** Judges the address that is connected to, not one that a name had before. */
function publicLookup(host: string, options: LookupOptions, found: Found): void {
  resolve(host, { ...options, all: true }, (error, addresses) => {
    const open = (addresses ?? []).filter(({ address }) => !isPrivateAddress(address))
    const [first] = open
    if (error || !first) found(error ?? new PrivateAddress('private address'), [])
    else if (options.all) found(null, open)
    else found(null, first.address, first.family)
  })
}
