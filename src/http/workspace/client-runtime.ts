import Type, { type Static } from 'typebox'
import { refuse } from '../../kernel/errors.ts'
import { closed, oneOf } from '../schema.ts'

const revision = Type.String({ minLength: 1, maxLength: 128, 'x-storable': true })
const small = Type.Integer({ minimum: 0, maximum: 65_535 })

/** As clients read it: a build of a version meets it, with or without a pre-release, never with build metadata. */
const version = '^(0|[1-9][0-9]*)\\.(0|[1-9][0-9]*)\\.(0|[1-9][0-9]*)(-[0-9A-Za-z-]+(\\.[0-9A-Za-z-]+)*)?$'

/** What the oldest build in the field can run. */
export const clientRuntime = closed(
  {
    minimum_sdk_version: Type.String({ maxLength: 64, pattern: version, description: 'Such as `2.1.0`.' }),
    runtime_revision: revision,
    luau: closed({ revision, bytecode_versions: Type.Array(small, { minItems: 1, maxItems: 256 }) }),
    scene_format: closed({ major: small, minor: small }),
    timezone_data: closed({
      format: oneOf('iana-tzdb'),
      revision,
      sha256: Type.String({ pattern: '^[a-f0-9]{64}$' }),
    }),
    capabilities: Type.Array(Type.String({ minLength: 1, maxLength: 256, 'x-storable': true }), {
      maxItems: 256,
      uniqueItems: true,
      description: 'What that build can do: the renderer, `system-fonts`, `video.playback.v1`.',
    }),
  },
  { description: 'The oldest build in the field: what has screens is signed with these as its requirements.' },
)

/** What a schema has no word for. */
export function checkRuntime({ luau: { bytecode_versions: versions } }: Static<typeof clientRuntime>): void {
  if (versions.every((one, i) => i === 0 || (versions[i - 1] ?? one) < one)) return
  const param = 'client_runtime.luau.bytecode_versions'
  throw refuse('invalid_request', { param, message: `${param} must ascend` })
}
