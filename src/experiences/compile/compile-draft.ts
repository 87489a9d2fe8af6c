import { canonicalJson } from '../../kernel/canonical-json.ts'
import { buildBytesMax, descriptorBytesMax } from '../../kernel/limits.ts'
import type { Platform } from '../../tenancy/index.ts'
import type { Content } from '../draft/content.ts'
import type { Draft } from '../draft/draft.ts'
import { type Findings, under } from '../draft/findings.ts'
import type { References } from '../draft/references.ts'
import { type CompiledLeg, compile } from './leg.ts'
import type { Plan } from './plan.ts'

/** Part of every build id and descriptor: another compiler makes another build. */
export const compiler = { commit: '0000000', version: '1.1.0' }

export interface Compilation {
  draft: Draft
  experience: { publicId: string }
  known: { deliverAlways: boolean; content: Content; experiments: References['experiments'] }
  platform: Platform
}

/** A valid draft as legs for one platform; undefined, and told, when what it makes is larger than clients take. */
export function compileDraft(
  { draft, experience, known: { deliverAlways, content, experiments }, platform }: Compilation,
  findings: Findings,
): { legs: CompiledLeg[]; plan: Plan } | undefined {
  const { names } = content
  const showing = { platform, content }
  const { holdout: held = '' } = draft.policy
  const variants = experiments.get(held)?.variants
  const holdout = variants === undefined ? null : { experimentId: held, variants }
  const experienceId = experience.publicId
  const made = compile({ draft, experienceId, names, deliverAlways, compiler, showing, holdout })
  return isSmall(draft, made.legs, findings) ? made : undefined
}

/** As many bytes as any identity takes, so that a build that is small enough today is so under every number. */
const identity = {
  ...{ appId: 'a'.repeat(64), environment: 'test', experienceId: 'e'.repeat(64), experienceVersionId: 'v'.repeat(64) },
  ...{ versionNumber: 2 ** 31, buildId: 'b'.repeat(30), publishedAt: '2026-11-20T09:00:00.000Z' },
  publishedAtSeq: Number.MAX_SAFE_INTEGER,
}

function isSmall(draft: Draft, legs: CompiledLeg[], findings: Findings): boolean {
  let total = 0
  for (const { sectionKey, locales, body } of legs) {
    const bytes = Buffer.byteLength(canonicalJson({ ...body, identity }))
    total += bytes * locales.length
    if (bytes > descriptorBytesMax) {
      const path = under(
        '/graph/steps',
        draft.graph.steps.findIndex(({ id }) => id === sectionKey),
      )
      const message = `Leg "${sectionKey}" (${locales[0] ?? ''}) is ${bytes} bytes; the limit is ${descriptorBytesMax}.`
      findings.add(path, 'descriptor_size', message)
      return false
    }
    if (total > buildBytesMax) {
      findings.add('', 'limit_exceeded', `More than ${buildBytesMax} bytes of legs in all locales; at most that.`)
      return false
    }
  }
  return true
}
