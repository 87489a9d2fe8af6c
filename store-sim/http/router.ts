import type { IncomingHttpHeaders } from 'node:http'
import type { Sim } from '../world.ts'

export interface Request {
  method: string
  path: string
  params: Record<string, string>
  query: URLSearchParams
  headers: IncomingHttpHeaders
  bytes: Buffer
}

export interface Reply {
  status?: number
  headers?: Record<string, string>
  /** Objects go out as JSON, text and bytes as they are. */
  body?: object | string | Buffer
}

export type Handler = (sim: Sim, request: Request) => Reply | Promise<Reply>

/** `{name}` takes one segment, up to a `/` or a verb behind a `:`. */
export type Routes = Record<`${'GET' | 'POST' | 'PUT' | 'DELETE'} /${string}`, Handler>

interface Route {
  method: string
  pattern: RegExp
  handler: Handler
}

export function compile(routes: Routes): Route[] {
  return Object.entries(routes).map(([key, handler]) => {
    const [method = '', path = ''] = key.split(' ')
    const pattern = path.replace(/[.]/g, '\\.').replace(/\{(\w+)\}/g, '(?<$1>[^/:]+)')
    return { method, pattern: new RegExp(`^${pattern}$`), handler }
  })
}

export type Match = { handler: Handler; params: Record<string, string> } | 'no_such_method' | 'no_such_path'

export function match(routes: Route[], method: string, path: string): Match {
  const hits = routes.filter(({ pattern }) => pattern.test(path))
  const hit = hits.find((route) => route.method === method)
  if (hit === undefined) return hits.length > 0 ? 'no_such_method' : 'no_such_path'
  const groups = hit.pattern.exec(path)?.groups ?? {}
  const params = Object.fromEntries(Object.entries(groups).map(([name, text]) => [name, decodeURIComponent(text)]))
  return { handler: hit.handler, params }
}
