import { also, asc, digest, exact, hold, id, integer, is, list, type Of, rid, textWhich } from './check.ts'

const versionPattern = /^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(?:-([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?$/
const version = textWhich(
  (value) => value.length <= 64 && versionPattern.test(value),
  'is a semantic version without a build',
)

const bytecodeVersions = also(list(integer(0, 65_535), { min: 1, max: 256 }), (all, at) =>
  hold(
    at,
    all.every((each, index) => index === 0 || (all[index - 1] ?? each) < each),
    'ascends',
  ),
)

/** What a device must be for a leg with screens. */
export const requirements = exact({
  minimumSdkVersion: version,
  runtimeRevision: rid,
  luau: exact({ revision: rid, bytecodeVersions }),
  sceneFormat: exact({ major: integer(0, 65_535), minor: integer(0, 65_535) }),
  timezoneData: exact({ format: is('iana-tzdb'), revision: rid, sha256: digest }),
  requiredCapabilities: asc(id(), { max: 256 }),
})
export type Requirements = Of<typeof requirements>

/** What a device is. */
export interface Runtime {
  version: string
  revisions: string[]
  luau: Record<string, number[]>
  sceneFormat: { major: number; minor: number }
  timezoneData: { format: string; revision: string; sha256: string }
  capabilities: string[]
}

/** Why a device does not admit the leg; empty when it does. */
export function refusals(needed: Requirements, runtime: Runtime): string[] {
  const { luau, sceneFormat, timezoneData } = needed
  const understood = runtime.luau[luau.revision] ?? []
  const zones = (['format', 'revision', 'sha256'] as const).every(
    (key) => timezoneData[key] === runtime.timezoneData[key],
  )
  const because = (refused: boolean, what: string) => (refused ? [what] : [])
  return [
    ...because(isBelow(runtime.version, needed.minimumSdkVersion), 'minimumSdkVersion'),
    ...because(!runtime.revisions.includes(needed.runtimeRevision), 'runtimeRevision'),
    ...because(!luau.bytecodeVersions.every((each) => understood.includes(each)), 'luau'),
    ...because(
      sceneFormat.major !== runtime.sceneFormat.major || sceneFormat.minor > runtime.sceneFormat.minor,
      'sceneFormat',
    ),
    ...because(!zones, 'timezoneData'),
    ...because(
      !needed.requiredCapabilities.every((each) => runtime.capabilities.includes(each)),
      'requiredCapabilities',
    ),
  ]
}

/** By precedence of semantic versions. */
function isBelow(one: string, other: string): boolean {
  const [ours, theirs] = [partsOf(one), partsOf(other)]
  for (const index of [0, 1, 2] as const) {
    if (ours.numbers[index] !== theirs.numbers[index]) return (ours.numbers[index] ?? 0) < (theirs.numbers[index] ?? 0)
  }
  return isEarlier(ours.before, theirs.before)
}

function isEarlier(ours: string[], theirs: string[]): boolean {
  if (ours.length === 0 || theirs.length === 0) return ours.length > 0 && theirs.length === 0
  for (const [index, their] of theirs.entries()) {
    const our = ours[index]
    if (our === undefined) return true
    if (our === their) continue
    const [a, b] = [/^\d+$/.test(our), /^\d+$/.test(their)]
    if (a && b) return Number(our) < Number(their)
    return a === b ? our < their : a
  }
  return false
}

function partsOf(sent: string): { numbers: number[]; before: string[] } {
  const [, major, minor, patch, before] = versionPattern.exec(sent) ?? []
  return { numbers: [major, minor, patch].map(Number), before: before?.split('.') ?? [] }
}
