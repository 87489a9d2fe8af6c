import assert from 'node:assert/strict'
import type { Body } from '../app/answers.ts'
import { type App, openProject, type Project } from '../app/project.ts'
import { aDraft } from '../harness/a-draft.ts'
import type { TestService } from '../harness/service.ts'

/** A project with an app that signed Experiences reach. */
export interface Stage {
  project: Project
  app: App
  /** Saves the draft of an Experience, made when it is new, and publishes it. */
  publish: (key?: string, draft?: object, options?: object) => Promise<Body>
  /** `pause`, `resume`, `unpublish`, `archive`. */
  change: (key: string, verb: string, body?: object) => Promise<Body>
  /** A key, which signs from now on. */
  rotate: (body?: object) => Promise<Body>
  /** The profile; every answer is held against the contract. */
  profile: (distinctId: string, more?: object, by?: App) => Promise<{ body: Body; tag: string; bytes: Buffer }>
  explain: (distinctId: string, query?: string, by?: App) => Promise<Body>
}

export async function openStage(service: TestService): Promise<Stage> {
  const project = await openProject(service)
  const app = await project.app('ios')
  const revisions = new Map<string, number>()
  const inProject = `?project_id=${project.id}`
  const stage: Stage = {
    ...{ project, app },
    async publish(key = 'welcome', draft = aDraft(), options = {}) {
      const revision = revisions.get(key) ?? 0
      if (revision === 0) await project.post('/experiences', { project_id: project.id, key, name: key })
      const headers = { 'if-match': String(revision) }
      const saved = await service.workspace('PUT', `/experiences/${key}/draft${inProject}`, { body: draft, headers })
      assert.equal(saved.status, 200, JSON.stringify(saved.body))
      revisions.set(key, revision + 1)
      return project.post(`/experiences/${key}/versions${inProject}`, options)
    },
    change: (key, verb, body = {}) => project.post(`/experiences/${key}/${verb}${inProject}`, body),
    async rotate(body = {}) {
      const key = await project.post('/signing_keys', { project_id: project.id })
      return project.post(`/signing_keys/${key.id}/activate`, body)
    },
    async profile(distinctId, more = {}, by = app) {
      const { status, body, bytes, headers } = await by.post('/profile', { distinct_id: distinctId, ...more })
      assert.equal(status, 200, JSON.stringify(body))
      return { body, bytes, tag: headers.get('etag') ?? '' }
    },
    async explain(distinctId, query = '', by = app) {
      const id = await project.customer(distinctId)
      return project.get(`/customers/${id}/profile?app_id=${by.id}${query}`)
    },
  }
  await stage.rotate()
  return stage
}
