import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { uuidV7 } from '../../src/kernel/ids.ts'
import type { Environment, Platform } from '../../src/tenancy/index.ts'
import type { Body } from '../app/answers.ts'
import { type App, anEvent, eventually, openProject, type Project } from '../app/project.ts'
import { aDraft } from '../harness/a-draft.ts'
import type { TestService } from '../harness/service.ts'

/** An Experience that is live. */
export interface Published {
  id: string
  key: string
  versionId: string
  /** Leg ids by section. */
  legs: Record<string, string>
  /** The next version of it. */
  publish: (draft: object, more?: object) => Promise<Published>
}

export interface ReportOf {
  journeyId: string
  of: Published
  section: string
  generation?: number
  startedAt?: number
  outcome?: string
  outputs?: object
  more?: Record<string, unknown>
}

/** A project with an app and a key that signs, and what devices say to it. */
export interface Stage {
  service: TestService
  project: Project
  app: App
  publish: (draft: object) => Promise<Published>
  send: (distinctId: string, event: string, properties?: object, more?: object) => Promise<string>
  started: (distinctId: string, report: ReportOf, app?: App) => Promise<void>
  completed: (distinctId: string, report: ReportOf, app?: App) => Promise<void>
  /** Newest first; none while the customer is unknown. */
  journeysOf: (distinctId: string) => Promise<Body[]>
  journey: (id: string) => Promise<Body>
  /** As soon as it is so. */
  journeyIs: (id: string, is: (journey: Body) => boolean) => Promise<Body>
  legs: (id: string) => Promise<Body[]>
  transitions: (id: string) => Promise<Body[]>
  dispositions: () => Promise<Record<string, number>>
  /** Until everything sent before has been told. */
  quiet: () => Promise<void>
  call: TestService['workspace']
}

interface StageOf {
  platform?: Platform
  environment?: Environment
  /** One that is there. */
  of?: { project: Project; app: App }
}

export async function openStage(
  service: TestService,
  { platform = 'ios', environment = 'test', of }: StageOf = {},
): Promise<Stage> {
  const project = of?.project ?? (await openProject(service))
  const app = of?.app ?? (await project.app(platform, environment))
  const key = await project.post('/signing_keys', { project_id: project.id }, { environment })
  await project.post(`/signing_keys/${key.id}/activate`, {}, { environment })
  const call: TestService['workspace'] = (method, path, options) =>
    service.workspace(method, path, { environment, ...options })
  const ok = async (method: string, path: string, options = {}) => {
    const { status, body } = await call(method, path, options)
    assert.ok(status < 300, `${method} ${path}: ${status} ${JSON.stringify(body)}`)
    return body
  }
  const place = `?project_id=${project.id}`
  let experiences = 0

  async function publishAs(key: string, revision: number, draft: object, more: object = {}): Promise<Published> {
    await ok('PUT', `/experiences/${key}/draft${place}`, { body: draft, headers: { 'if-match': String(revision) } })
    const version = await ok('POST', `/experiences/${key}/versions${place}`, { body: more })
    const { id } = await ok('GET', `/experiences/${key}${place}`)
    const rows = await service.pool.query<{ plan: string }>(
      'select plan from publication where scope_id = $1 order by id desc limit 1',
      [await project.scopeId(environment)],
    )
    const { sections } = JSON.parse(rows[0]?.plan ?? '{}') as { sections: Record<string, { legId: string }> }
    const legs = Object.fromEntries(Object.entries(sections).map(([section, { legId }]) => [section, legId]))
    const publish = (next: object, with_: object = {}) => publishAs(key, revision + 1, next, with_)
    return { id, key, versionId: version.id, legs, publish }
  }

  const report = async (kind: 'started' | 'completed', distinctId: string, of: ReportOf, by = app) => {
    const { journeyId, section, generation = 0, startedAt = Date.now(), outcome, outputs, more } = of
    const done = {
      completed_at: new Date(startedAt + 5).toISOString(),
      outcome,
      outputs: { event: {}, responses: {}, ...outputs },
    }
    const properties = {
      ...{ journey_id: journeyId, experience_id: of.of.id, experience_version_id: of.of.versionId },
      ...{ leg_id: of.of.legs[section], leg_generation: generation, started_at: new Date(startedAt).toISOString() },
      ...(kind === 'completed' ? done : {}),
      ...more,
    }
    const answer = await by.post('/event', anEvent(distinctId, { event: `$journey_leg_${kind}`, properties }))
    assert.equal(answer.status, 200, JSON.stringify(answer.body))
  }

  const stage: Stage = {
    ...{ service, project, app, call },
    async publish(draft) {
      const key = `x${++experiences}`
      await ok('POST', '/experiences', { body: { project_id: project.id, key, name: key } })
      return publishAs(key, 0, draft)
    },
    async send(distinctId, event, properties = {}, more = {}) {
      const uuid = randomUUID()
      const answer = await app.post('/event', anEvent(distinctId, { event, uuid, properties, ...more }))
      assert.equal(answer.status, 200, JSON.stringify(answer.body))
      return uuid
    },
    started: (distinctId, of, by) => report('started', distinctId, of, by),
    completed: (distinctId, of, by) => report('completed', distinctId, of, by),
    async journeysOf(distinctId) {
      const { status, body } = await call('GET', `/customers/by_distinct_id/${encodeURIComponent(distinctId)}${place}`)
      return status === 404 ? [] : (await ok('GET', `/customers/${body.id}/journeys?limit=100`)).data
    },
    journey: (id) => ok('GET', `/journeys/${id}`),
    journeyIs: (id, is) =>
      eventually(async () => {
        const { status, body } = await call('GET', `/journeys/${id}`)
        return status === 200 && is(body) && body
      }, 20_000),
    legs: async (id) => (await ok('GET', `/journeys/${id}/legs`)).data,
    transitions: async (id) => (await ok('GET', `/journeys/${id}/transitions?limit=100`)).data,
    async dispositions() {
      const rows = await service.pool.query<{ disposition: string; count: bigint }>(
        'select disposition, sum(count)::bigint as count from journey_disposition where scope_id = $1 group by 1',
        [await project.scopeId(environment)],
      )
      return Object.fromEntries(rows.map(({ disposition, count }) => [disposition, Number(count)]))
    },
    async quiet() {
      const last = `last-${randomUUID()}`
      const scopeId = await project.scopeId(environment)
      await app.post('/event', anEvent(last))
      await eventually(
        async () => (await call('GET', `/customers/by_distinct_id/${last}${place}`)).status === 200,
        30_000,
      )
      await eventually(async () => {
        const waiting = await service.pool.query(
          `select scope_id from journey_inbox where scope_id = $1
           union all select scope_id from journey_sweep where scope_id = $1`,
          [scopeId],
        )
        return waiting.length === 0
      }, 30_000)
    },
  }
  return stage
}

/** Enrolled by the device; a day later the server goes on to a second section. */
export function deviceDraft(entry: object = {}, policy: object = {}) {
  const draft = aDraft()
  draft.policy = { ...draft.policy, ...policy, entry: { ...(draft.policy.entry as object), ...entry } }
  return draft
}

/** Begun by the server: a wait, then a section on a device. */
export function serverDraft(trigger: object, { entry = {}, policy = {} }: { entry?: object; policy?: object } = {}) {
  const draft = aDraft()
  draft.policy = {
    ...draft.policy,
    ...policy,
    entry: { frequency: { type: 'every_match' }, ...entry, trigger, enrolment: 'server' },
  }
  draft.graph.entry = 'again'
  draft.graph.steps = draft.graph.steps.filter(({ id }) => id === 'again' || id === 'bye')
  return draft
}

export const newJourneyId = () => uuidV7(Date.now())
