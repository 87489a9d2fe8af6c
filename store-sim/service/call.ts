import type { Connection } from '../world.ts'

const answerMsMax = 10_000

export interface ServiceAnswer {
  ok: boolean
  status: number
  // biome-ignore lint/suspicious/noExplicitAny: answers of many shapes, read with care where they are used
  body: any
}

/** The Workspace API, for the test environment unless told otherwise. Unreachable counts as 0. */
export async function callService(
  to: Pick<Connection, 'workspaceBaseUrl' | 'secretKey' | 'environmentHeader'> & { environment?: string },
  method: string,
  path: string,
  body?: object,
): Promise<ServiceAnswer> {
  return call(`${to.workspaceBaseUrl}${path}`, method, body, {
    authorization: `Bearer ${to.secretKey}`,
    [to.environmentHeader]: to.environment ?? 'test',
  })
}

/** The App API, as a device calls it. */
export function callAppApi(to: Connection, path: string, body: object): Promise<ServiceAnswer> {
  return call(`${to.workspaceBaseUrl.replace(/\/v1$/, '')}${path}`, 'POST', body, {})
}

async function call(
  url: string,
  method: string,
  body: object | undefined,
  headers: Record<string, string>,
): Promise<ServiceAnswer> {
  try {
    const response = await fetch(url, {
      method,
      headers: { 'content-type': 'application/json', ...headers },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(answerMsMax),
    })
    const text = await response.text()
    return { ok: response.ok, status: response.status, body: parse(text) }
  } catch (error) {
    return { ok: false, status: 0, body: { error: { code: 'unreachable', message: String(error) } } }
  }
}

function parse(text: string): unknown {
  try {
    return text === '' ? {} : JSON.parse(text)
  } catch {
    return { text }
  }
}
