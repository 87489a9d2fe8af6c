import Type from 'typebox'
import type { Pool } from '../../db/pool.ts'
import { type Build, findBuild, listBuildLegs } from '../../experiences/index.ts'
import { refuse } from '../../kernel/errors.ts'
import { closed, instant, oneOf } from '../schema.ts'
import { scopeIn } from './caller.ts'
import type { Endpoints } from './endpoint.ts'
import { environment, id } from './parts.ts'
import type { Look } from './route.ts'

const anyJson = Type.Record(Type.String(), Type.Unknown())
const Leg = Type.Object({
  leg_id: Type.String(),
  section_key: Type.String({ description: 'The step that it begins with.' }),
  locale: Type.String(),
  size_bytes: Type.Integer({ description: 'Without the identity that a publication adds.' }),
  facts: anyJson,
  inputs: anyJson,
  outcomes: Type.Array(Type.String(), { description: 'Those that its own steps end with.' }),
})

const BuildObject = Type.Object(
  {
    object: Type.Literal('build'),
    id: Type.String(),
    environment,
    version_id: Type.String(),
    app_id: Type.String(),
    status: oneOf('ready'),
    compiler_version: Type.String(),
    locales: Type.Array(Type.String()),
    legs: Type.Array(Leg),
    created_at: instant,
  },
  { title: 'Build' },
)

const PlanObject = Type.Object(
  {
    object: Type.Literal('build_plan'),
    id: Type.String({ description: 'Of the build.' }),
    plan: Type.Record(Type.String(), Type.Unknown(), {
      description: 'Where a journey goes on after each outcome of each section. Devices never get it.',
    }),
  },
  { title: 'BuildPlan' },
)

const tag = 'Publishing'
const params = closed({ id })
const errors = [404]

/** Parts of a descriptor that the compiler made. */
interface LegParts {
  facts: Record<string, unknown>
  inputs: Record<string, unknown>
  steps: { kind: string; outcome?: string; action?: { type: string; reason?: string } }[]
}

export function builds({ get }: Endpoints, pool: Pool): void {
  get(
    {
      path: '/builds/:id',
      operationId: 'getBuild',
      tag,
      summary: 'Get a build',
      description: 'What a version is for one app: its legs in each locale.',
      params,
      answers: { 200: BuildObject },
      errors,
    },
    async (look, input) => {
      const { build, of } = await find(look, input.params.id)
      const legs = await listBuildLegs(pool, build.scopeId, build.buildId)
      return {
        object: 'build',
        id: build.buildId,
        environment: of,
        version_id: build.versionId,
        app_id: build.appId,
        status: 'ready',
        compiler_version: build.compilerVersion,
        locales: build.locales,
        legs: legs.flatMap(({ legId, sectionKey, locales, body }) => {
          const { facts, inputs, steps } = body.leg as unknown as LegParts // made by the compiler
          const size = Buffer.byteLength(JSON.stringify(body))
          const outcomes = [...new Set(steps.flatMap(outcomeOf))]
          const shown = { size_bytes: size, facts, inputs, outcomes }
          return locales.map((locale) => ({ leg_id: legId, section_key: sectionKey, locale, ...shown }))
        }),
        created_at: build.createdAt.toISOString(),
      }
    },
  )

  get(
    {
      path: '/builds/:id/plan',
      operationId: 'getBuildPlan',
      tag,
      summary: "Get a build's plan",
      params,
      answers: { 200: PlanObject },
      errors,
    },
    async (look, input) => {
      const { build } = await find(look, input.params.id)
      return { object: 'build_plan', id: build.buildId, plan: JSON.parse(build.plan) as object } // written by the compiler
    },
  )

  async function find(
    look: Look,
    buildId: string,
  ): Promise<{ build: Build & { scopeId: number }; of: 'test' | 'live' }> {
    const scopes = look.scopes()
    const build = await findBuild(pool, scopes, buildId)
    if (!build) throw refuse('not_found')
    return { build, of: scopeIn(scopes, build).environment }
  }
}

function outcomeOf({ outcome, action }: LegParts['steps'][number]): string[] {
  if (outcome !== undefined) return [outcome]
  return action?.type === 'exit' ? [action.reason ?? 'completed'] : []
}
