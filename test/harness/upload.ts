import type { Answer } from '../workspace/api.ts'

export interface Uploading {
  url: string
  key: string
  projectId?: string
  environment?: string
  headers?: Record<string, string>
  query?: string
}

/** Sends a file as it is. A stream is sent in chunks, without saying how long it is. */
export async function upload(
  { url, key, projectId, environment = 'test', headers = {}, query = '' }: Uploading,
  bytes: Buffer | ReadableStream,
  contentType: string,
): Promise<Answer> {
  const project = projectId === undefined ? '' : `project_id=${projectId}&`
  const response = await fetch(`${url}/v1/artifacts?${project}${query}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'x-service-env': environment, 'content-type': contentType, ...headers },
    body: bytes instanceof Buffer ? new Uint8Array(bytes) : bytes,
    ...(bytes instanceof Buffer ? {} : { duplex: 'half' }),
  } as RequestInit) // `duplex` is not in its type yet
  return { status: response.status, body: await response.json(), headers: response.headers }
}
