import { Readable } from 'node:stream'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import Type from 'typebox'
import { type Pool, unavailable } from '../../db/pool.ts'
import { fileAt, openArtefact } from '../../experiences/index.ts'
import { refuse } from '../../kernel/errors.ts'
import type { WireNames } from '../../kernel/wire-names.ts'
import { closed } from '../schema.ts'
import { appErrors } from './responses.ts'

export interface ArtefactOptions {
  names: WireNames
  /** Connections for reading files: slow fetchers never hold up requests. */
  filePool: Pool
}

/** Where base addresses lie by default, and what is below each. */
const folders = [
  { base: '/r', folder: 'renders', operationId: 'getScene', summary: 'A scene' },
  { base: '/a', folder: 'assets', operationId: 'getAsset', summary: 'An asset' },
  { base: '/a', folder: 'screen-behavior', operationId: 'getScript', summary: 'A script' },
]

/**
 * Uploaded files, under addresses made of their hashes: public, without a key, and the same for ever. They are meant to be
 * fetched through a cache in front of the service.
 */
export function artefacts(server: FastifyInstance, { names, filePool }: ArtefactOptions): void {
  for (const { base, folder, operationId, summary } of folders) {
    const path = `${base}/${folder}/sha256/:file`
    const send = async (request: FastifyRequest<{ Params: { file: string } }>, reply: FastifyReply) => {
      const wanted = fileAt(names, `${folder}/sha256/${request.params.file}`)
      const found =
        wanted &&
        (await openArtefact(filePool, wanted).catch((error: unknown) => {
          throw unavailable(error, 'service_unavailable')
        }))
      if (!wanted || !found) throw refuse('not_found')
      reply
        .header('content-type', wanted.contentType)
        .header('content-length', found.sizeBytes)
        .header('cache-control', 'public, max-age=31536000, immutable')
        .header('etag', `"${wanted.sha256}"`)
        .header('x-content-type-options', 'nosniff')
      if (request.method === 'HEAD') return reply.send()
      return reply.send(Readable.from(found.pieces(), { objectMode: false, highWaterMark: 1 }))
    }
    server.route({
      method: 'GET',
      url: path,
      exposeHeadRoute: false,
      schema: {
        operationId,
        summary,
        description: `Below the profile's ${base === '/r' ? '`renderBaseUrl`' : '`assetBaseUrl`'}. It never changes: keep it.`,
        tags: ['Files'],
        params: closed({ file: Type.String({ maxLength: 128, description: 'SHA-256 and ending.' }) }),
        response: { 200: Type.Unsafe({ type: 'string', format: 'binary' }), ...appErrors(404, 503) },
      },
      handler: send,
    })
    server.head(path, { schema: { hide: true }, handler: send })
  }
}
