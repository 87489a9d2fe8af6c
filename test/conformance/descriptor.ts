import { presents } from './actions.ts'
import {
  type At,
  also,
  anything,
  type Check,
  exact,
  fields,
  flag,
  hold,
  id,
  integer,
  into,
  is,
  list,
  matching,
  nullOr,
  number,
  type Of,
  positive,
  rid,
  sameSet,
  say,
  tagged,
  text,
  textUpTo,
  time,
  word,
} from './check.ts'
import { actionsOf, leg, placementsOf } from './leg.ts'
import { checkPlacements, placements, products } from './products.ts'
import { artefactsOf, capabilitiesOf, render } from './render.ts'
import { requirements } from './requirements.ts'
import { checkGroups, hasNull, responses, ruleGroups, state } from './responses.ts'
import { type Artefact, screenBehaviors, scriptsOf } from './screen-behaviors.ts'

/** What all legs of one publication share. */
export const identityKeys = {
  appId: rid,
  environment: is('test', 'live'),
  experienceId: rid,
  experienceVersionId: rid,
  versionNumber: integer(1),
  buildId: rid,
  publishedAt: time,
  publishedAtSeq: integer(),
}
const identity = exact(identityKeys)
export type Identity = Of<typeof identity>

const zone = also(rid, (value, at) => hold(at, isZone(value), 'is a time zone'))
const metadata = exact(
  { name: id(), appDefaultTimezone: zone },
  { experienceType: id(64), description: textUpTo(2048) },
)
const provenance = exact({ compilerCommit: id(128), compilerVersion: id(64) })

const look = {
  orientation: is('portrait', 'landscape', 'any'),
  backgroundColor: matching(/^#[0-9A-Fa-f]{8}$/),
}
const presentation = tagged('style', {
  full_screen: fields(look),
  sheet: fields({ ...look, sheet: exact({ detent: is('medium', 'large'), dismissible: flag }) }),
  drawer: fields({
    ...look,
    drawer: exact({
      edge: is('bottom', 'top', 'leading', 'trailing'),
      extentRatio: positive(1),
      cornerRadius: number(0, 128),
      dismissible: flag,
    }),
  }),
})

const viewModelValue = exact(
  { viewModelName: id(), path: text, value: anything },
  { instanceId: id(), instanceName: id() },
)

const shape = exact({
  schemaVersion: word((namespace) => `${namespace}.journey-release.v3`),
  identity,
  metadata,
  presentation,
  leg,
  products,
  placements,
  viewModelValues: list(viewModelValue),
  screenBehaviors,
  render: nullOr(render),
  requirements: nullOr(requirements),
  provenance,
  state,
  responses,
  ruleGroups,
})
export type Descriptor = Of<typeof shape>

/** The signed content of a release: every key, and everything that one part says of another. */
export const descriptor: Check<Descriptor> = also(shape, (whole, at) => {
  checkPlacements(whole.products, whole.placements, into(at, 'placements'))
  const sold = new Set(whole.placements.map((each) => each.id))
  for (const named of placementsOf(whole.leg)) hold(into(at, `leg.${named.at}`), sold.has(named.id), 'is a placement')
  for (const key of ['state', 'responses', 'ruleGroups'] as const)
    hold(into(at, key), !hasNull(whole[key]), 'holds no null')
  checkGroups(whole.responses, whole.ruleGroups, into(at, 'ruleGroups'))
  const behaving = whole.screenBehaviors.map((each) => each.screenId)
  const onScreens = sameSet(behaving, idsOf(whole.leg.screens))
  hold(into(at, 'screenBehaviors'), onScreens, 'has one entry for each screen')
  checkScreens(whole, at)
  checkArtefacts(whole, at)
})

function checkScreens(
  { leg: { screens }, render: drawn, requirements: needed, leg: section }: Descriptor,
  at: At,
): void {
  if (screens.length === 0) {
    hold(into(at, 'render'), drawn === null, 'is null without screens')
    hold(into(at, 'requirements'), needed === null, 'is null without screens')
    hold(into(at, 'leg.steps'), !actionsOf(section).some(presents), 'present nothing without screens')
    return
  }
  if (drawn === null || needed === null) {
    say(at, 'has render and requirements, having screens')
    return
  }
  const same = sameSet(idsOf(screens), idsOf(drawn.screens))
  hold(into(at, 'render.screens'), same, 'are the screens of the leg')
  for (const capability of capabilitiesOf(drawn)) {
    const asked = needed.requiredCapabilities.includes(capability)
    hold(into(at, 'requirements.requiredCapabilities'), asked, `has ${capability}`)
  }
}

const scriptsBytesMax = 16 * 1024 * 1024
const artefactsBytesMax = 128 * 1024 * 1024

function checkArtefacts(whole: Descriptor, at: At): void {
  const scripts = scriptsOf(whole.screenBehaviors)
  const everything = downloadsOf(whole, at.namespace)
  hold(at, bytesOf(scripts) <= scriptsBytesMax, 'has scripts of at most 16 MiB')
  hold(at, bytesOf(everything) <= artefactsBytesMax, 'has artefacts of at most 128 MiB')
  const told = new Set(
    everything.map(({ key, sha256, sizeBytes, contentType }) => JSON.stringify([key, sha256, sizeBytes, contentType])),
  )
  const distinctly = (of: (each: Artefact) => string) => new Set(everything.map(of)).size === told.size
  hold(
    at,
    distinctly((each) => each.key),
    'says the same of an artefact wherever it names it',
  )
  hold(
    at,
    distinctly((each) => each.sha256),
    'says the same of a digest wherever it names it',
  )
}

/** What a client fetches before it shows the leg. */
export function downloadsOf({ render: drawn, screenBehaviors: behaviors }: Descriptor, namespace: string): Artefact[] {
  return [...(drawn === null ? [] : artefactsOf(drawn, namespace)), ...scriptsOf(behaviors)]
}

function bytesOf(artefacts: Artefact[]): number {
  return [...new Map(artefacts.map((each) => [each.sha256, each.sizeBytes])).values()].reduce(
    (sum, each) => sum + each,
    0,
  )
}

function idsOf(all: readonly { id: string }[]): string[] {
  return all.map((each) => each.id)
}

function isZone(value: string): boolean {
  try {
    return new Intl.DateTimeFormat('en', { timeZone: value }).resolvedOptions().timeZone !== ''
  } catch {
    return false
  }
}

/** Compact, keys sorted by code unit at every depth: the one way in which a descriptor is written. */
export function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const members = Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1))
  return `{${members.map(([key, each]) => `${JSON.stringify(key)}:${canonical(each)}`).join(',')}}`
}
