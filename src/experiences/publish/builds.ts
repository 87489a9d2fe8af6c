import type { Tx } from '../../db/pool.ts'
import { must } from '../../kernel/assert.ts'
import { refuse } from '../../kernel/errors.ts'
import type { WireNames } from '../../kernel/wire-names.ts'
import type { App, Platform, Scope } from '../../tenancy/index.ts'
import { selectArtefacts, selectUnreadable } from '../artefacts/artefact-store.ts'
import type { Experience } from '../authoring/experience-store.ts'
import type { Known } from '../authoring/load-known.ts'
import { compileDraft, compiler } from '../compile/compile-draft.ts'
import type { CompiledLeg } from '../compile/leg.ts'
import { buildIdOf } from '../compile/release.ts'
import type { Draft } from '../draft/draft.ts'
import { validateDraft } from '../draft/validate.ts'
import { type Build, insertBuild, selectBuildLegs } from './build-store.ts'
import { filesIn } from './check-showing.ts'
import type { Version } from './version-store.ts'

export interface Compiled {
  legs: CompiledLeg[]
  /** JSON. */
  plan: string
  locales: string[]
  previews: Record<string, unknown>
}

/** What a draft is for each of its platforms. */
export type Made = ReadonlyMap<Platform, Compiled>

/** A draft that is right, compiled for each of its platforms. 400 `draft_invalid` with issues for any other. */
export function compileFor(
  value: unknown,
  { experience, known }: { experience: Experience; known: Known },
): { draft: Draft; made: Made } {
  const { draft, findings } = validateDraft(value, known)
  const made = new Map<Platform, Compiled>()
  for (const platform of draft?.platforms ?? []) {
    // Only what screens sell differs by store.
    const [same] = (draft?.screens ?? []).length === 0 ? made.values() : []
    if (same) {
      made.set(platform, same)
      continue
    }
    const result = draft && compileDraft({ draft, experience, known, platform }, findings)
    if (!draft || !result) break
    const locales = [draft.locales.default, ...(draft.locales.others ?? [])]
    const previews = previewsIn(draft, known)
    made.set(platform, { legs: result.legs, plan: JSON.stringify(result.plan), locales, previews })
  }
  if (draft === null || findings.issues.length > 0) throw refuse('draft_invalid', { issues: findings.issues })
  return { draft, made }
}

/** Store texts as they are copied, by Product. */
function previewsIn({ placements = [] }: Draft, { content: { products } }: Known): Record<string, unknown> {
  const sold = placements.map(({ productId }) => must(products.get(productId), 'validation found it'))
  return Object.fromEntries(sold.map(({ id, preview }) => [id, preview]))
}

export type Built = Pick<Compiled, 'legs' | 'plan'> & { buildId: string }

/** As it was. */
export async function restored(tx: Tx, scope: Scope, { buildId, plan }: Build): Promise<Built> {
  return { buildId, plan, legs: await selectBuildLegs(tx, scope.scopeId, buildId) }
}

/** Kept under the id of its content. */
export async function buildIn(
  tx: Tx,
  scope: Scope,
  { app, experience, version }: { app: App; experience: Experience; version: Version },
  compiled: Compiled,
): Promise<Built> {
  const compilerVersion = compiler.version
  const target = { appId: app.id, environment: scope.environment, experienceVersionId: version.publicId }
  const buildId = buildIdOf({ ...target, compilerVersion }, compiled.legs)
  const { versionNumber } = version
  await insertBuild(tx, scope, experience, { ...compiled, buildId, appId: app.id, versionNumber, compilerVersion })
  return { ...compiled, buildId }
}

/** Devices refuse everything when one file that they are told to fetch is not there, or not whole. */
export async function checkFiles(tx: Tx, scope: Scope, names: WireNames, legs: CompiledLeg[]): Promise<void> {
  const named = [...new Set(legs.flatMap(({ body }) => filesIn(names, body)))]
  if (named.length === 0) return
  const stored = await selectArtefacts(tx, scope.projectId, named)
  const unreadable = await selectUnreadable(tx, scope.projectId, named)
  const lost = named.find((sha256) => unreadable.includes(sha256) || !stored.some((one) => one.sha256 === sha256))
  if (lost === undefined) return
  throw refuse('release_self_check_failed', { details: { rule: `sha256:${lost} is not stored, or can't be read` } })
}
