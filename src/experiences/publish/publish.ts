import { hash } from 'node:crypto'
import { keepInternalSegments, keepSegments } from '../../customers/index.ts'
import type { Tx } from '../../db/pool.ts'
import { must } from '../../kernel/assert.ts'
import { canonicalJson } from '../../kernel/canonical-json.ts'
import { Refusal, refuse } from '../../kernel/errors.ts'
import { newId } from '../../kernel/ids.ts'
import { targetAppsMax } from '../../kernel/limits.ts'
import { type App, listApps, type Scope } from '../../tenancy/index.ts'
import { announce, type ChangedIn } from '../announce/announce.ts'
import { type Experience, updateExperience } from '../authoring/experience-store.ts'
import { getDraft, getExperience } from '../authoring/experiences.ts'
import { loadKnown, type Settings } from '../authoring/load-known.ts'
import { asJudged } from '../compile/as-judged.ts'
import { describe, envelopeOf, type Identity, signedMessage } from '../compile/release.ts'
import type { Draft } from '../draft/draft.ts'
import type { DraftIssue } from '../draft/findings.ts'
import { openSigner } from '../keys/signer.ts'
import { selectBuilds } from './build-store.ts'
import { type Built, buildIn, checkFiles, compileFor, type Made, restored } from './builds.ts'
import { type InFlight, insertLegs, insertPublication, reserveSeq } from './publication-store.ts'
import { insertReleases } from './release-store.ts'
import { createReleaseCheck } from './self-check.ts'
import { type TryProfiles, trialOf } from './trial.ts'
import { insertVersion, selectVersion, selectVersions, type Version } from './version-store.ts'

export interface PublishServices extends Settings {
  sealingKey: Buffer
  tryProfiles: TryProfiles
}

export interface PublishCommand {
  /** Those to publish in; absent: every app of the project whose platform the draft is for. */
  appIds?: string[] | undefined
  /** What becomes of journeys under way: kept with the publication. */
  inFlight?: InFlight | undefined
  /** Who asks. */
  by: string
  at: Date
}

/**
 * Freezes the saved draft: the newest version where it holds the same, otherwise the next. 400 `draft_invalid` with issues
 * for one that can't be published. The Experience is held until the transaction ends.
 */
export async function freeze(
  tx: Tx,
  scope: Scope,
  idOrKey: string,
  { note, keptDays }: { note: string | null; keptDays: number },
  settings: Settings,
): Promise<{ experience: Experience; version: Version; isNew: boolean; made: Made }> {
  const experience = await getExperience(tx, [scope], idOrKey, { lock: true })
  if (experience.status === 'archived') throw refuse('conflict', { message: 'The Experience is archived.' })
  const { text } = await getDraft(tx, experience)
  const saved: unknown = JSON.parse(text ?? 'null')
  // What it names is there until it is live.
  await keepSegments(tx, scope)
  const known = await loadKnown(tx, scope, { experience, draft: saved }, settings)
  const { draft, made } = compileFor(saved, { experience, known })
  await keepHistory(tx, scope, { draft, experience, keptDays })
  const canonical = canonicalJson(draft)
  const draftSha256 = hash('sha256', canonical)
  const [newest] = await selectVersions(tx, experience, { limit: 1, after: null })
  if (newest?.draftSha256 === draftSha256) return { experience, version: newest, isNew: false, made }
  await insertVersion(tx, experience, { publicId: newId('ver'), draft: canonical, draftSha256, note })
  const [version] = await selectVersions(tx, experience, { limit: 1, after: null })
  return { experience, version: must(version, 'it was inserted'), isNew: true, made }
}

/** What its conditions ask of past events is kept from now on, so that it is known when the version goes live. */
async function keepHistory(
  tx: Tx,
  scope: Scope,
  { draft, experience, keptDays }: { draft: Draft; experience: Experience; keptDays: number },
): Promise<void> {
  const owner = experience.publicId
  const { segments } = asJudged(draft, owner)
  await keepInternalSegments(tx, scope, { owner, segments, keptDays }).catch((error: unknown) => {
    if (!(error instanceof Refusal) || error.code !== 'invalid_request') throw error
    const message = `A condition over past events looks back further than they are kept, ${keptDays} days.`
    const issue: DraftIssue = { path: '/policy', message, code: 'ir_plane' }
    throw refuse('draft_invalid', { issues: [issue] })
  })
}

/**
 * Makes a version live in its apps, all of them or none: compiled, stamped with the next number of each app, signed,
 * checked as a client would, and activated, in one transaction. So numbers appear in order, and one that fails was never seen.
 * An older version is a rollback: the same build under a higher number. What was never compiled for an app is compiled now;
 * `made` is what freezing has compiled, with the store texts and settings of now.
 */
export async function activate(
  tx: Tx,
  scope: Scope,
  experience: Experience,
  { versionId, appIds, inFlight = 'finish', by, at, made }: PublishCommand & { versionId: string; made?: Made },
  services: PublishServices,
): Promise<void> {
  const builds = await build(tx, scope, experience, { versionId, appIds, made }, services)
  if (builds.length === 0) {
    throw refuse('conflict', { message: 'The project has no app of a platform that the draft is for.' })
  }
  const changed: ChangedIn[] = []
  for (const built of builds) {
    const seq = await publishIn(tx, scope, { ...built, experience, inFlight, by, at }, services)
    const { publicId: id, versionNumber: number } = built.version
    changed.push({ appId: built.app.id, version: { id, number, seq } })
  }
  await updateExperience(tx, experience, { name: experience.name, status: 'published' })
  await announce(tx, scope, 'experience.published', { experience, changed })
}

/**
 * What a version is in its apps: what is `made`, or the build that it had there, or else one that is compiled now. Kept in any case.
 * 400 `draft_invalid` for a version that is not right any more.
 */
export async function build(
  tx: Tx,
  scope: Scope,
  experience: Experience,
  { versionId, appIds, made: given }: { versionId: string; appIds?: string[] | undefined; made?: Made | undefined },
  settings: Settings,
): Promise<(Built & { app: App; version: Frozen })[]> {
  const version = await selectVersion(tx, experience, versionId)
  if (!version) throw refuse('not_found')
  if (experience.status === 'archived') throw refuse('conflict', { message: 'The Experience is archived.' })
  const draft = JSON.parse(version.draft) as Draft // it was found right when it was frozen
  const kept = given ? [] : await selectBuilds(tx, experience, [version.versionNumber])
  let made = given
  const builds: (Built & { app: App; version: Frozen })[] = []
  for (const app of await targetsOf(tx, scope, draft, appIds)) {
    const before = kept.find(({ appId }) => appId === app.id)
    if (before) {
      builds.push({ ...(await restored(tx, scope, before)), app, version })
      continue
    }
    if (!made) await keepSegments(tx, scope)
    made ??= compileFor(draft, { experience, known: await loadKnown(tx, scope, { experience, draft }, settings) }).made
    const compiled = must(made.get(app.platform), 'the draft is for it')
    builds.push({ ...(await buildIn(tx, scope, { app, experience, version }, compiled)), app, version })
  }
  return builds
}

/** With the draft that it froze. */
type Frozen = Version & { draft: string }

interface Target extends Built {
  app: App
  experience: Experience
  version: Frozen
  inFlight: InFlight
  by: string
  at: Date
}

/** Gives its number. */
async function publishIn(
  tx: Tx,
  scope: Scope,
  { app, experience, version, inFlight, by, at, buildId, legs, plan }: Target,
  { names, sealingKey, tryProfiles }: PublishServices,
): Promise<number> {
  await checkFiles(tx, scope, names, legs)
  const signer = await openSigner(tx, scope, app.id, sealingKey)
  const target = { appId: app.id, environment: scope.environment, experienceVersionId: version.publicId }
  const seq = await reserveSeq(tx, scope, app.id)
  const { versionNumber } = version
  const identity: Identity = {
    ...{ ...target, experienceId: experience.publicId, versionNumber, buildId },
    ...{ publishedAt: at.toISOString(), publishedAtSeq: seq },
  }
  await insertPublication(tx, scope, {
    ...{ publicId: newId('pub'), experience, appId: app.id, seq, versionNumber, buildId },
    ...{ plan, publishedAt: at, publishedBy: by, inFlight },
  })
  const check = createReleaseCheck(names, signer)
  const releases = legs.map((leg) => {
    const release = describe(leg, identity)
    const signature = signer.sign(signedMessage(names, release.bytes))
    const envelope = envelopeOf(names, release, { keyId: signer.keyId, signature })
    const wrong = check({ ...identity, legId: release.legId }, envelope)
    if (wrong !== undefined) throw refuse('release_self_check_failed', { details: { rule: wrong } })
    return { ...release, signingKeyId: signer.id, signature }
  })
  const stamp = { app_id: app.id, seq: BigInt(seq), version_id: version.publicId, version_number: versionNumber }
  const row = {
    ...{ experience_row_id: experience.id, experience_id: experience.publicId, ...stamp, build_id: buildId, plan },
    ...{ draft: version.draft, status: 'live' as const },
  }
  const { environment } = scope
  const refused = tryProfiles(trialOf(names, { app, environment, check, row, signed: releases, key: signer }))
  if (refused !== undefined) throw refuse('release_self_check_failed', { details: { rule: refused } })
  await insertReleases(tx, scope, releases)
  const each = releases.flatMap(({ legId, locales, sha256 }) => locales.map((locale) => ({ legId, locale, sha256 })))
  await insertLegs(tx, scope, { appId: app.id, seq }, each)
  return seq
}

/** In the order of their ids, in which their numbers are taken: two that publish at once wait for each other, never both. */
async function targetsOf(tx: Tx, scope: Scope, draft: Draft, appIds: string[] | undefined): Promise<App[]> {
  const { workspaceId, environment, projectId } = scope
  const page = { limit: targetAppsMax, after: null }
  const apps = await listApps(tx, workspaceId, environment, { projectId, page })
  const fitting = apps.filter(({ platform }) => draft.platforms.includes(platform))
  const targets = appIds === undefined ? fitting : apps.filter(({ id }) => appIds.includes(id))
  if (targets.length < (appIds?.length ?? 0)) throw refuse('not_found', { param: 'app_ids' })
  const other = targets.find((app) => !fitting.includes(app))
  if (other) {
    throw refuse('invalid_request', { param: 'app_ids', message: `The draft is not for ${other.platform}.` })
  }
  return targets.toSorted((a, b) => (a.id < b.id ? -1 : 1))
}
