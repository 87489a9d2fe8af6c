import type { FastifyInstance } from 'fastify'
import Type from 'typebox'
import { unavailable } from '../../db/pool.ts'
import type { PublishedKey } from '../../experiences/index.ts'
import type { Clock } from '../../kernel/clock.ts'
import { releaseKeysKeptMs } from '../../kernel/limits.ts'
import { oneOf } from '../schema.ts'
import { appErrors } from './responses.ts'

export interface ReleaseKeysOptions {
  releaseKeys: () => Promise<PublishedKey[]>
  clock: Clock
}

const Keys = Type.Object(
  {
    keys: Type.Array(
      Type.Object({
        kty: oneOf('OKP'),
        crv: oneOf('Ed25519'),
        x: Type.String({ description: 'The public key, base64url.' }),
        kid: Type.String({ description: 'As releases name it.' }),
        use: oneOf('sig'),
        alg: oneOf('EdDSA'),
        project_id: Type.String(),
        environment: oneOf('test', 'live'),
        status: oneOf('staged', 'active', 'retired'),
      }),
    ),
  },
  { title: 'ReleaseKeys' },
)

/** `GET /.well-known/release-keys`: a JWK set. Public, so the database is asked every few seconds however many call. */
export function releaseKeys(server: FastifyInstance, { releaseKeys: read, clock }: ReleaseKeysOptions): void {
  let kept: { at: number; text: Promise<string> } | undefined
  server.get('/.well-known/release-keys', {
    schema: {
      operationId: 'getReleaseKeys',
      summary: 'Keys that verify releases',
      description: 'A JSON Web Key Set of all projects and environments, without revoked keys.',
      tags: ['Service'],
      response: { 200: Keys, ...appErrors(503) },
    },
    handler: async (_request, reply) => {
      const now = clock.now()
      if (kept === undefined || now < kept.at || now - kept.at > releaseKeysKeptMs) {
        kept = { at: now, text: read().then((keys) => JSON.stringify({ keys: keys.map(show) })) }
      }
      const text = await kept.text.catch((error: unknown) => {
        kept = undefined
        throw unavailable(error, 'service_unavailable')
      })
      return reply
        .header('cache-control', 'public, max-age=300')
        .header('content-type', 'application/json; charset=utf-8')
        .send(text)
    },
  })
}

function show({ keyId, publicKey, projectId, environment, status }: PublishedKey) {
  return {
    ...{ kty: 'OKP', crv: 'Ed25519', x: publicKey.toString('base64url'), kid: keyId, use: 'sig', alg: 'EdDSA' },
    ...{ project_id: projectId, environment, status },
  }
}
