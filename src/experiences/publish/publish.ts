import { hash } from 'node:crypto'
import type { Tx } from '../../db/pool.ts'
import { must } from '../../kernel/assert.ts'
import { canonicalJson } from '../../kernel/canonical-json.ts'
import { refuse } from '../../kernel/errors.ts'
import { newId } from '../../kernel/ids.ts'
import { targetAppsMax } from '../../kernel/limits.ts'
import type { WireNames } from '../../kernel/wire-names.ts'
import { type App, listApps, type Scope } from '../../tenancy/index.ts'
import { type Experience, updateExperience } from '../authoring/experience-store.ts'
import { getDraft, getExperience } from '../authoring/experiences.ts'
import { loadReferences } from '../authoring/load-references.ts'
import { compile } from '../compile/leg.ts'
import { buildIdOf, describe, envelopeOf, type Identity, signedMessage } from '../compile/release.ts'
import type { Draft } from '../draft/draft.ts'
import { validateDraft } from '../draft/validate.ts'
import { openSigner } from '../keys/signer.ts'
import { insertLegs, insertPublication, insertRelease, reserveSeq } from './publication-store.ts'
import { checkRelease } from './self-check.ts'
import { insertVersion, selectVersion, selectVersions, type Version } from './version-store.ts'

/** Part of every build id and descriptor: another compiler makes another build. */
const compiler = { commit: '0000000', version: '1.0.0' }

export interface PublishServices {
  names: WireNames
  /** Whether clients know the entry condition `always`. */
  deliverAlways: boolean
  sealingKey: Buffer
}

export interface PublishCommand {
  /** Those to publish in; absent: every app of the project whose platform the draft is for. */
  appIds?: string[] | undefined
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
  { note }: { note: string | null },
): Promise<{ experience: Experience; version: Version; isNew: boolean }> {
  const experience = await getExperience(tx, [scope], idOrKey, { lock: true })
  if (experience.status === 'archived') throw refuse('conflict', { message: 'The Experience is archived.' })
  const { text } = await getDraft(tx, experience)
  const { draft, findings } = validateDraft(JSON.parse(text ?? 'null'), await loadReferences(tx, scope))
  if (draft === null) throw refuse('draft_invalid', { issues: findings.issues })
  const canonical = canonicalJson(draft)
  const draftSha256 = hash('sha256', canonical)
  const [newest] = await selectVersions(tx, experience, { limit: 1, after: null })
  if (newest?.draftSha256 === draftSha256) return { experience, version: newest, isNew: false }
  await insertVersion(tx, experience, { publicId: newId('ver'), draft: canonical, draftSha256, note })
  const [version] = await selectVersions(tx, experience, { limit: 1, after: null })
  return { experience, version: must(version, 'it was inserted'), isNew: true }
}

/**
 * Makes a version live in its apps, all of them or none: compiled, stamped with the next number of each app, signed,
 * checked as a client would, and activated, in one transaction. So numbers appear in order, and one that fails was never seen.
 * An older version is a rollback: the same build under a higher number.
 */
export async function activate(
  tx: Tx,
  scope: Scope,
  experience: Experience,
  { versionId, appIds, by, at }: PublishCommand & { versionId: string },
  services: PublishServices,
): Promise<void> {
  const version = await selectVersion(tx, experience, versionId)
  if (!version) throw refuse('not_found')
  if (experience.status === 'archived') throw refuse('conflict', { message: 'The Experience is archived.' })
  const draft = JSON.parse(version.draft) as Draft // it was found right when it was frozen
  for (const app of await targetsOf(tx, scope, draft, appIds)) {
    await publishIn(tx, scope, { app, experience, version, draft, by, at }, services)
  }
  await updateExperience(tx, experience, { name: experience.name, status: 'published' })
}

interface Target {
  app: App
  experience: Experience
  version: Version
  draft: Draft
  by: string
  at: Date
}

async function publishIn(
  tx: Tx,
  scope: Scope,
  { app, experience, version, draft, by, at }: Target,
  { names, deliverAlways, sealingKey }: PublishServices,
): Promise<void> {
  const signer = await openSigner(tx, scope, app.id, sealingKey)
  const { legs, plan } = compile({ draft, experienceId: experience.publicId, names, deliverAlways, compiler })
  const locales = [draft.locales.default, ...(draft.locales.others ?? [])]
  const { environment } = scope
  const target = { appId: app.id, environment, experienceVersionId: version.publicId }
  const buildId = buildIdOf({ ...target, compilerVersion: compiler.version }, locales, legs)
  const seq = await reserveSeq(tx, scope, app.id)
  const { versionNumber } = version
  const identity: Identity = {
    ...{ ...target, experienceId: experience.publicId, versionNumber, buildId },
    ...{ publishedAt: at.toISOString(), publishedAtSeq: seq },
  }
  await insertPublication(tx, scope, {
    ...{ publicId: newId('pub'), experience, appId: app.id, seq, versionNumber, buildId },
    ...{ plan: JSON.stringify(plan), publishedAt: at, publishedBy: by },
  })
  const releases = legs.map((leg) => describe(leg, identity))
  for (const release of releases) {
    const signature = signer.sign(signedMessage(names, release.bytes))
    const envelope = envelopeOf(names, release, { keyId: signer.keyId, signature })
    const wrong = checkRelease(names, { ...identity, legId: release.legId }, envelope, signer)
    if (wrong !== undefined) throw refuse('release_self_check_failed', { details: { rule: wrong } })
    const { sha256, bytes } = release
    await insertRelease(tx, scope, { sha256, bytes, signingKeyId: signer.id, signature })
  }
  // A leg that shows nothing is the same in every locale.
  const each = releases.flatMap(({ legId, sha256 }) => locales.map((locale) => ({ legId, locale, sha256 })))
  await insertLegs(tx, scope, { appId: app.id, seq }, each)
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
  if (targets.length === 0) {
    throw refuse('conflict', { message: 'The project has no app of a platform that the draft is for.' })
  }
  return targets.toSorted((a, b) => (a.id < b.id ? -1 : 1))
}
