import Type from 'typebox'
import { nullableNumber, oneOf } from '../schema.ts'

const digest = Type.String({ pattern: '^[a-f0-9]{64}$' })

const arm = Type.Object({
  reference: Type.Object({
    experienceId: Type.String(),
    versionId: Type.String(),
    legId: digest,
    descriptorSha256: digest,
  }),
  binding: Type.Union([
    Type.Object({ type: oneOf('new') }),
    Type.Object({
      type: oneOf('continue'),
      journeyId: Type.String(),
      generation: Type.Integer({ minimum: 0 }),
    }),
  ]),
  context: Type.Object({
    event: Type.Record(Type.String(), Type.Unknown()),
    responses: Type.Record(Type.String(), Type.Unknown()),
  }),
  entryCondition: Type.Unknown({ description: 'As it is signed in the release.' }),
  conversion: Type.Optional(Type.Unknown({ description: 'How far the goal of a journey that goes on was met.' })),
})

const release = Type.Object({
  locator: Type.Object({
    appId: Type.String(),
    environment: oneOf('test', 'live'),
    experienceId: Type.String(),
    experienceVersionId: Type.String(),
    versionNumber: Type.Integer({ minimum: 1 }),
    buildId: Type.String(),
    publishedAt: Type.String(),
    publishedAtSeq: Type.Integer({ minimum: 0 }),
    legId: digest,
  }),
  envelope: Type.Object({
    mediaType: Type.String(),
    encoding: oneOf('base64'),
    descriptorSha256: digest,
    descriptorSizeBytes: Type.Integer({ minimum: 1 }),
    descriptorBytesBase64: Type.String(),
    signature: Type.Object({
      version: Type.Literal(1),
      algorithm: oneOf('ed25519'),
      keyId: Type.String(),
      signatureBase64: Type.String(),
    }),
  }),
})

/** The members of a profile. */
export const profileFields = {
  schemaVersion: Type.String(),
  status: oneOf('ok'),
  delivery: Type.Object({ renderBaseUrl: Type.String(), assetBaseUrl: Type.String() }),
  features: Type.Array(
    Type.Object({
      id: Type.String(),
      type: oneOf('boolean', 'metered', 'creditSystem'),
      balance: nullableNumber,
      unlimited: Type.Boolean(),
      nextResetAt: Type.Null(),
      interval: Type.Null(),
    }),
  ),
  facts: Type.Object({
    properties: Type.Record(Type.String(), Type.Unknown()),
    memberships: Type.Record(Type.String(), Type.Boolean()),
    assignments: Type.Record(Type.String(), Type.Unknown()),
  }),
  armedLegs: Type.Array(arm),
  releases: Type.Array(release),
}
