import type { FastifyInstance, FastifyRequest } from 'fastify'
import Type from 'typebox'
import type { Pool } from '../../db/pool.ts'
import { keepArtefact, receiveArtefact, type Upload, uploadTypes } from '../../experiences/index.ts'
import { must } from '../../kernel/assert.ts'
import { refuse } from '../../kernel/errors.ts'
import { sceneBytesMax, uploadsAtOnceMax } from '../../kernel/limits.ts'
import type { WireNames } from '../../kernel/wire-names.ts'
import { closed, instant } from '../schema.ts'
import { scopeOf } from './caller.ts'
import { environment, projectId } from './parts.ts'
import { workspaceErrors } from './responses.ts'
import { changing, type WorkspaceServices } from './route.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** Set where the body is a file, once it has arrived. */
    upload: Upload | null
  }
}

const ArtifactObject = Type.Object(
  {
    object: Type.Literal('artifact'),
    id: Type.String({ description: 'The SHA-256, as `sha256`.' }),
    environment: { ...environment, description: 'Of the request: files are of the project, for both environments.' },
    sha256: Type.String(),
    size_bytes: Type.Integer(),
    content_type: Type.String(),
    created_at: instant,
  },
  { title: 'Artifact' },
)

const Query = closed({
  project_id: projectId,
  sha256: Type.Optional(
    Type.String({
      pattern: '^[a-f0-9]{64}$',
      description: 'What the file should have: 400 `artifact_hash_mismatch` if not.',
    }),
  ),
})
interface Asked extends FastifyRequest {
  query: { project_id?: string; sha256?: string }
}

/**
 * `POST /artifacts`: the bytes as they are, stored under their hash while they arrive. In a scope of its own: nothing else
 * takes a body that is no JSON.
 */
export function artifacts(server: FastifyInstance, services: WorkspaceServices & { names: WireNames }): void {
  const { names, directory, pool } = services
  const types = uploadTypes(names)
  const takes = takeOne(pool, types)
  server.decorateRequest('upload', null)
  server.removeAllContentTypeParsers()
  server.addContentTypeParser('*', takes)

  server.post<{ Querystring: Asked['query'] }>('/artifacts', {
    bodyLimit: sceneBytesMax,
    config: {
      access: { by: 'key_or_session', role: 'member', verified: true, plan: true },
      documentedBody: Type.Unsafe<unknown>({ description: 'The bytes of the file. The example is a manifest.' }),
    },
    schema: {
      operationId: 'uploadArtifact',
      summary: 'Upload a file',
      description: `For screens: a scene, an asset, a script, or the manifest that names them. The body is the file, \`Content-Type\` one of ${[...types.keys()].join(', ')}. It is known by its SHA-256 and never changes; 200 when the project has it already. Apps fetch it from the profile's base addresses.`,
      tags: ['Publishing'],
      security: [{ secretKey: [] }, { userSession: [] }],
      querystring: Query,
      consumes: [...types.keys()],
      response: {
        201: ArtifactObject,
        200: ArtifactObject,
        ...workspaceErrors(400, 401, 402, 403, 404, 409, 413, 429, 503),
      },
    },
    // Before a byte is read.
    preParsing: (request, _reply, payload, done) => {
      try {
        scopeOf(directory, must(request.caller, 'the route is authenticated'), (request as Asked).query.project_id)
        done(null, payload)
      } catch (error) {
        done(error as Error) // a refusal
      }
    },
    handler: changing<Asked>(services, async (change, request) => {
      const upload = request.upload
      if (!upload) throw refuse('invalid_request', { message: 'The file is empty.' })
      const { project_id, sha256 } = request.query
      if (sha256 !== undefined && sha256 !== upload.sha256) {
        throw refuse('artifact_hash_mismatch', { param: 'sha256', details: { sha256: upload.sha256 } })
      }
      const { projectId: project, environment: of } = change.scope(project_id)
      const { artefact, isNew } = await keepArtefact(change.tx, project, upload)
      const body: Type.Static<typeof ArtifactObject> = {
        object: 'artifact',
        id: artefact.sha256,
        environment: of,
        sha256: artefact.sha256,
        size_bytes: artefact.sizeBytes,
        content_type: artefact.contentType,
        created_at: artefact.createdAt.toISOString(),
      }
      if (isNew) await change.audit('create', 'artifact', artefact.sha256, { after: body })
      return { status: isNew ? 201 : 200, body }
    }),
  })
}

/** Takes the file in, piece by piece, before the handler; what stands for the body then is what names the file. */
function takeOne(pool: Pool, types: ReadonlyMap<string, number>) {
  let underWay = 0
  return async (request: FastifyRequest, payload: AsyncIterable<Buffer> & { resume: () => void }) => {
    const contentType = (request.headers['content-type'] ?? '').split(';')[0]?.trim().toLowerCase() ?? ''
    const bytesMax = types.get(contentType)
    if (bytesMax === undefined) {
      payload.resume()
      const message = `Content-Type must be one of ${[...types.keys()].join(', ')}.`
      throw refuse('artifact_type_unknown', { param: 'Content-Type', message })
    }
    if (request.headers['content-encoding'] !== undefined) {
      payload.resume()
      throw refuse('unsupported_encoding')
    }
    if (underWay >= uploadsAtOnceMax) {
      payload.resume()
      throw refuse('service_unavailable', { message: 'Too many files are being uploaded. Retry.' })
    }
    underWay++
    try {
      request.upload = await receiveArtefact(pool, payload, { contentType, bytesMax })
    } finally {
      underWay--
      // Whatever is left of one that was refused: its sender hears of it once it is read.
      payload.resume()
    }
    const { sha256, sizeBytes } = request.upload
    return { sha256, sizeBytes, contentType }
  }
}
