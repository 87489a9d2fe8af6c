import { gunzipSync } from 'node:zlib'
import { isObject } from './check.ts'
import { type Exchange, judge } from './judge.ts'
import { type Highest, raised } from './newest.ts'

/** The newest publications that any profile has shown so far; apps of all servers have ids of their own. */
let highest: Highest = new Map()

type Request = Pick<Exchange, 'method' | 'path' | 'ifNoneMatch'> & {
  base: string
  body: string | Uint8Array | undefined
}
type Response = Pick<Exchange, 'status' | 'headers' | 'bytes'>

/**
 * To be called before a request to the App API is sent; what it returns holds the answer against the contract, and throws with
 * every rule that it breaks. Before, because what was published by then may not be followed by anything older.
 */
export function conformance({ base, body, ...request }: Request): (answer: Response) => Promise<void> {
  const before = highest
  return async (answer) => {
    // A body that was refused may be anything, and too deep to be parsed here.
    const wasRead = answer.status < 300 || answer.status === 402
    const exchange = { ...request, sent: wasRead ? jsonOf(body) : undefined, ...answer }
    const keys =
      request.path === '/profile' && answer.status === 200 ? await releaseKeys(base, answer.bytes) : new Map()
    const { problems, profile } = judge(exchange, { keys, highest: before })
    if (profile !== undefined) highest = raised(highest, profile)
    if (problems.length === 0) return
    const rules = problems.map(({ path, rule }) => `  ${path} ${rule}`).join('\n')
    const said = Buffer.from(answer.bytes).toString('utf8', 0, 2000)
    throw new Error(
      `${request.method} ${request.path} answered ${answer.status} against the contract:\n${rules}\n${said}`,
    )
  }
}

/** Undefined for what is no JSON. */
function jsonOf(body: string | Uint8Array | undefined): unknown {
  if (body === undefined) return undefined
  try {
    const bytes = Buffer.from(body)
    const text = bytes[0] === 0x1f && bytes[1] === 0x8b ? gunzipSync(bytes) : bytes
    return JSON.parse(text.toString())
  } catch {
    return undefined
  }
}

/** How long what is published about keys may be behind: what the server says of it, and a machine that does much else. */
const keysBehindMs = 5000

/** As the server publishes them, asked for only when there is something to verify, and again for a key that is not there yet. */
async function releaseKeys(base: string, profile: Uint8Array): Promise<Map<string, Uint8Array>> {
  if (Buffer.from(profile).includes('"releases":[]')) return new Map()
  const named = new Set(
    [
      ...Buffer.from(profile)
        .toString()
        .matchAll(/"keyId":"([^"]*)"/g),
    ].map(([, id]) => id ?? ''),
  )
  const deadline = performance.now() + keysBehindMs
  for (;;) {
    const keys = await publishedKeys(base)
    if ([...named].every((id) => keys.has(id)) || performance.now() > deadline) return keys
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}

async function publishedKeys(base: string): Promise<Map<string, Uint8Array>> {
  const response = await fetch(`${base}/.well-known/release-keys`)
  const body: unknown = await response.json()
  const keys: unknown[] = isObject(body) && Array.isArray(body.keys) ? body.keys : []
  return new Map(keys.filter(isObject).map(({ kid, x }) => [String(kid), Buffer.from(String(x), 'base64url')]))
}
