import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { must } from '../../src/kernel/assert.ts'
import type { Answer } from '../workspace/api.ts'
import { aManifest, aScreenDraft, type ScreenDraft } from './a-screen-draft.ts'

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

/** The draft with screens, its files uploaded: other ones for each locale. */
export async function uploadedDraft(to: Uploading, locales = ['en', 'de']): Promise<ScreenDraft> {
  const file = async (bytes: Buffer, type: string) => {
    const { status, body } = await upload(to, bytes, type)
    assert.equal(status, 201, JSON.stringify(body))
    return String(body.sha256)
  }
  const draft = aScreenDraft()
  const [first, ...others] = locales
  Object.assign(draft, { locales: { default: first, others }, render: {} })
  for (const locale of locales) {
    const manifest = aManifest()
    manifest.scene = { sha256: await file(randomBytes(5), 'application/vnd.service.scene'), sizeBytes: 5 }
    for (const asset of manifest.assets) {
      if (asset.sha256 !== undefined) asset.sha256 = await file(randomBytes(7), String(asset.contentType))
    }
    const sha256 = await file(Buffer.from(JSON.stringify(manifest)), 'application/json')
    draft.render[locale] = { manifest: `sha256:${sha256}` }
  }
  const script = `sha256:${await file(randomBytes(9), 'application/octet-stream')}`
  Object.assign(must(draft.screenBehaviors[0], 'there is one'), { script })
  return draft
}
