import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { failAsTold, holdUp, strike } from '../faults.ts'
import { Refusal, refuse } from '../refusal.ts'
import { log, type Sim } from '../world.ts'
import { compile, match, type Reply, type Request, type Routes } from './router.ts'

/** Purchase tokens reach 16,384 characters and stand in paths. */
const headerBytesMax = 65_536
const bodyBytesMax = 4 * 1024 * 1024
const surfaces = /^\/(appstore|play|stripe\/v1)\//

export function createHttp(routes: Routes, sim: Promise<Sim>): Server {
  const compiled = compile(routes)
  return createServer({ maxHeaderSize: headerBytesMax }, (incoming, outgoing) => {
    void sim.then((one) => answer(compiled, one, incoming, outgoing)).catch(() => outgoing.destroy())
  })
}

async function answer(
  routes: ReturnType<typeof compile>,
  sim: Sim,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
): Promise<void> {
  const url = new URL(incoming.url ?? '/', 'http://store-sim')
  const method = incoming.method ?? 'GET'
  const isStore = surfaces.test(url.pathname)
  let fault: string | undefined
  let reply: Reply
  try {
    if (!isStore) demandOwnPage(incoming)
    const bytes = await readBody(incoming)
    if (isStore) fault = await failAsTold(sim, url.pathname)
    const found = match(routes, method, url.pathname)
    if (typeof found === 'string') throw noRoute(found, method, url.pathname)
    const { handler, params } = found
    const { headers } = incoming
    const request: Request = { method, path: url.pathname, params, query: url.searchParams, headers, bytes }
    reply = await handler(sim, request)
  } catch (error) {
    reply = refusalReply(error)
  }
  let slowSeconds: number | undefined
  if (isStore) {
    const spoiled = strike(sim.world, url.pathname, ['truncated_json', 'oversized', 'slow_body'])
    if (spoiled !== undefined) {
      fault = spoiled.kind
      if (spoiled.kind === 'slow_body') slowSeconds = spoiled.seconds
      else reply = spoiled.kind === 'oversized' ? swell(reply) : truncate(reply)
    }
    log(sim, {
      kind: 'call',
      what: `${method} ${shorten(url.pathname)}`,
      status: reply.status ?? 200,
      ...faultOf(fault),
    })
  }
  if (slowSeconds === undefined) send(outgoing, reply)
  else await sendSlowly(outgoing, reply, slowSeconds)
}

/** Other sites' pages, and names that were made to lead here, have no business with the controls. */
function demandOwnPage({ headers }: IncomingMessage): void {
  const { host = '', origin } = headers
  const isLocal = /^(localhost|127\.0\.0\.1|\[::1\])(:\d+)?$/.test(host)
  if (!isLocal || (origin !== undefined && origin !== `http://${host}`))
    throw refuse('other_origin', 'the controls answer this machine and their own page only', 403)
}

function refusalReply(error: unknown): Reply {
  if (error instanceof Refusal) {
    const body = typeof error.body === 'string' ? error.body : { ...(error.body as object) } // bodies are made by us
    return { status: error.status, headers: error.headers, body }
  }
  if (error instanceof URIError) return refusalReply(refuse('invalid_request', 'the path is not percent-encoded'))
  console.error(error)
  return { status: 500, body: { error: { code: 'simulator_error', message: String(error) } } }
}

function noRoute(found: 'no_such_method' | 'no_such_path', method: string, path: string): Refusal {
  const status = found === 'no_such_method' ? 405 : 404
  return refuse(found, `the simulator does not answer ${method} ${shorten(path)}`, status)
}

async function readBody(incoming: IncomingMessage): Promise<Buffer> {
  const parts: Buffer[] = []
  let bytes = 0
  for await (const part of incoming) {
    bytes += part.length
    if (bytes > bodyBytesMax) throw refuse('payload_too_large', 'more than 4 MiB', 413)
    parts.push(part)
  }
  return Buffer.concat(parts)
}

function truncate(reply: Reply): Reply {
  const text = textOf(reply)
  return text === undefined ? reply : withText(reply, text.slice(0, text.length / 2))
}

const swollenBytes = 64 * 1024 * 1024

/** What it says, and blanks without an end. */
function swell(reply: Reply): Reply {
  return withText(reply, (textOf(reply) ?? '{}').padEnd(swollenBytes, ' '))
}

/** Half of it at once. */
async function sendSlowly(outgoing: ServerResponse, reply: Reply, seconds: number): Promise<void> {
  const text = textOf(reply) ?? ''
  outgoing.writeHead(reply.status ?? 200, { ...reply.headers, 'content-type': 'application/json' })
  outgoing.write(text.slice(0, text.length / 2))
  await holdUp(seconds)
  outgoing.end(text.slice(text.length / 2))
}

function textOf({ body }: Reply): string | undefined {
  if (body === undefined || Buffer.isBuffer(body)) return undefined
  return typeof body === 'string' ? body : JSON.stringify(body)
}

function withText(reply: Reply, body: string): Reply {
  return { ...reply, headers: { ...reply.headers, 'content-type': 'application/json' }, body }
}

function send(outgoing: ServerResponse, { status = 200, headers = {}, body }: Reply): void {
  const isJson = typeof body === 'object' && !Buffer.isBuffer(body)
  if (isJson) outgoing.setHeader('content-type', 'application/json; charset=utf-8')
  for (const [name, value] of Object.entries(headers)) outgoing.setHeader(name, value)
  outgoing.writeHead(status)
  outgoing.end(isJson ? JSON.stringify(body) : body)
}

/** Tokens and the like do not fill the log. */
function shorten(path: string): string {
  return path.replace(/[^/:]{40,}/g, (long) => `${long.slice(0, 24)}…`)
}

function faultOf(fault: string | undefined): { fault?: string } {
  return fault === undefined ? {} : { fault }
}
