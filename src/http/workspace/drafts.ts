import Type, { type Static } from 'typebox'
import type { Pool } from '../../db/pool.ts'
import {
  type Experience,
  getDraft,
  getExperience,
  judgeDraft,
  type SavedDraft,
  type Settings,
  saveDraft,
} from '../../experiences/index.ts'
import { refuse } from '../../kernel/errors.ts'
import { draftBytesMax } from '../../kernel/limits.ts'
import { closed, instant, nullable } from '../schema.ts'
import { scopeIn } from './caller.ts'
import type { Endpoints } from './endpoint.ts'
import { byIdOrKey, inProject } from './parts.ts'

const draft = Type.Record(Type.String(), Type.Unknown(), { description: 'See the guide on drafts.' })

const DraftObject = Type.Object(
  {
    object: Type.Literal('experience_draft'),
    id: Type.String({ description: 'Of the Experience.' }),
    revision: Type.Integer(),
    updated_at: nullable(instant),
    draft: nullable(draft),
  },
  { title: 'ExperienceDraft' },
)

const findings = Type.Array(
  Type.Object({
    path: Type.String({ description: 'JSON pointer into the draft.' }),
    message: Type.String(),
    code: Type.String({ description: 'Stable word for programs.' }),
  }),
)

const ValidationObject = Type.Object(
  {
    object: Type.Literal('validation'),
    valid: Type.Boolean(),
    issues: findings,
    warnings: findings,
    sections: Type.Array(
      Type.Object({ section_key: Type.String(), leg_id: Type.String(), steps: Type.Array(Type.String()) }),
      { description: 'What devices will run; empty while the draft is not valid.' },
    ),
  },
  { title: 'Validation' },
)

const tag = 'Experiences'
const takes = { bodyLimit: draftBytesMax, inflatedBytesMax: draftBytesMax }

export function drafts({ get, put, ask }: Endpoints, services: Settings & { pool: Pool }): void {
  const { pool } = services
  get(
    {
      path: '/experiences/:id/draft',
      operationId: 'getDraft',
      tag,
      summary: "Get an Experience's draft",
      description: 'By id or key of the Experience.',
      params: byIdOrKey,
      query: inProject,
      answers: { 200: DraftObject },
      errors: [404],
    },
    async (look, { params, query }) => {
      const experience = await getExperience(pool, look.scopes(query.project_id), params.id)
      return show(experience, await getDraft(pool, experience))
    },
  )

  put(
    {
      path: '/experiences/:id/draft',
      operationId: 'saveDraft',
      tag,
      summary: "Save an Experience's draft",
      description:
        '`If-Match` is the revision that was read, 0 before the first; 409 `draft_conflict` when somebody saved since. What is wrong with the draft is no reason to refuse it: ask `/draft/validate`.',
      params: byIdOrKey,
      query: inProject,
      body: draft,
      takes,
      ifMatch: true,
      answers: { 200: DraftObject },
      errors: [404, 409],
    },
    async (change, { params, query, body }) => {
      const revision = revisionIn(change.header('if-match'))
      const { tx } = change
      const edited = await saveDraft(tx, change.scopes(query.project_id), params.id, { draft: body, revision })
      const after = show(edited.after, edited.saved)
      const before = { revision: edited.before.draftRevision }
      await change.audit('save_draft', 'experience', edited.after.publicId, { before, after })
      return { status: 200, body: after }
    },
  )

  ask(
    {
      path: '/experiences/:id/draft/validate',
      operationId: 'validateDraft',
      tag,
      summary: 'Validate a draft',
      description:
        'The draft in the body, or else the saved one. Everything that is wrong is told, and nothing is saved.',
      params: byIdOrKey,
      query: inProject,
      body: closed({ draft: Type.Optional(draft) }),
      takes,
      answers: { 200: ValidationObject },
      errors: [404],
    },
    async (look, { params, query, body }) => {
      const scopes = look.scopes(query.project_id)
      const experience = await getExperience(pool, scopes, params.id)
      const saved = body.draft ?? parsed(await getDraft(pool, experience))
      const found = await judgeDraft(pool, scopeIn(scopes, experience), { experience, draft: saved }, services)
      const { valid, issues, warnings, sections } = found
      const shown = sections.map(({ key, legId, steps }) => ({ section_key: key, leg_id: legId, steps }))
      return { status: 200, body: { object: 'validation', valid, issues, warnings, sections: shown } }
    },
  )
}

/** `3` or `"3"`. */
function revisionIn(header: string | undefined): number {
  const revision = /^"?(\d{1,9})"?$/.exec(header ?? '')?.[1]
  if (revision !== undefined) return Number(revision)
  throw refuse('invalid_request', { param: 'If-Match', message: 'If-Match must be the revision of the draft' })
}

function parsed({ text }: SavedDraft): Record<string, unknown> | null {
  return text === null ? null : (JSON.parse(text) as Record<string, unknown>) // an object, saved above
}

function show({ publicId }: Experience, saved: SavedDraft): Static<typeof DraftObject> {
  return {
    object: 'experience_draft',
    id: publicId,
    revision: saved.revision,
    updated_at: saved.updatedAt?.toISOString() ?? null,
    draft: parsed(saved),
  }
}
