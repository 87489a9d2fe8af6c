import Type, { type Static } from 'typebox'
import type { Publication } from '../../experiences/index.ts'
import { instant, oneOf } from '../schema.ts'
import { environment } from './parts.ts'

export const PublicationObject = Type.Object(
  {
    object: Type.Literal('publication'),
    id: Type.String(),
    environment,
    experience_id: Type.String(),
    app_id: Type.String(),
    version_id: Type.String(),
    version_number: Type.Integer(),
    build_id: Type.String({ description: 'Names the compiled content: a rollback has the build that it had before.' }),
    published_at: instant,
    published_at_seq: Type.Integer({ description: 'Rises with every publication in the app.' }),
    published_by: Type.String(),
    in_flight: Type.Unsafe<'finish' | 'stop' | 'move_armed'>({
      ...oneOf('finish', 'stop', 'move_armed'),
      description: 'What became of the journeys that were under way when it was made live.',
    }),
    status: oneOf('live', 'paused', 'unpublished', 'superseded'),
    created_at: instant,
  },
  { title: 'Publication' },
)

export function showPublication(one: Publication, of: 'test' | 'live'): Static<typeof PublicationObject> {
  return {
    object: 'publication',
    id: one.publicId,
    environment: of,
    experience_id: one.experienceId,
    app_id: one.appId,
    version_id: one.versionId,
    version_number: one.versionNumber,
    build_id: one.buildId,
    published_at: one.publishedAt.toISOString(),
    published_at_seq: one.seq,
    published_by: one.publishedBy,
    in_flight: one.inFlight,
    status: one.status,
    created_at: one.publishedAt.toISOString(),
  }
}
