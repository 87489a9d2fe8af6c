import type { FastifyRequest } from 'fastify'
import { must } from '../../kernel/assert.ts'
import { refuse } from '../../kernel/errors.ts'
import type { WireNames } from '../../kernel/wire-names.ts'
import {
  type Directory,
  type Environment,
  looksLikePublishableKey,
  type Marks,
  type Scope,
  type SecretKeyHolder,
} from '../../tenancy/index.ts'

/** Who calls the Workspace API, and in which environment. */
export interface Caller {
  workspaceId: string
  environment: Environment
  actor: { type: 'secret_key'; id: string }
}

declare module 'fastify' {
  interface FastifyRequest {
    /** Set by `authenticateCaller` before validation. */
    caller: Caller | null
  }
}

export interface CallerOptions {
  directory: Directory
  marks: Marks
  names: WireNames
}

/** `Authorization: Bearer sk_…`, then the plan, then the environment header: 401, 402, 400. */
export function authenticateCaller({ directory, marks, names }: CallerOptions) {
  const environmentHeader = names.environmentHeader.toLowerCase()
  return async (request: FastifyRequest): Promise<void> => {
    const holder = holderOf(directory, request.headers.authorization)
    const environment = request.headers[environmentHeader] ?? 'live'
    if (environment !== 'test' && environment !== 'live') {
      throw refuse('invalid_request', { param: names.environmentHeader, message: 'must be test or live' })
    }
    marks.keyUsed('secret', holder.keyId)
    request.caller = { workspaceId: holder.workspaceId, environment, actor: { type: 'secret_key', id: holder.keyId } }
  }
}

function holderOf(directory: Directory, authorization: string | undefined): SecretKeyHolder {
  const key = /^Bearer +(\S+)$/i.exec(authorization ?? '')?.[1] ?? ''
  if (looksLikePublishableKey(key)) throw refuse('key_kind_invalid')
  const holder = directory.secretKey(key)
  if (!holder) throw refuse('invalid_api_key')
  if (holder.access === 'api_disabled') throw refuse('api_access_required')
  if (holder.access === 'payment_required') throw refuse('billing_payment_required')
  return holder
}

/** The scope of a named project, or of the workspace's only one. Another workspace's project does not exist: 404. */
export function scopeOf(directory: Directory, caller: Caller, projectId: string | undefined): Scope {
  const projects = directory.projectsOf(caller.workspaceId)
  if (projectId === undefined && projects.size !== 1) {
    throw refuse('invalid_request', {
      param: 'project_id',
      message: 'project_id is required: the workspace has not exactly one project',
    })
  }
  const id = projectId ?? [...projects][0] ?? ''
  const scope = projects.has(id) ? directory.scope(id, caller.environment) : undefined
  if (!scope) throw refuse('not_found', { param: 'project_id' })
  return scope
}

/**
 * The scope of a named project, or every scope of the caller's workspace, in the caller's environment: where an object named
 * by its id may lie.
 */
export function scopesOf(directory: Directory, caller: Caller, projectId: string | undefined): Scope[] {
  if (projectId !== undefined) return [scopeOf(directory, caller, projectId)]
  return [...directory.projectsOf(caller.workspaceId)].flatMap((id) => directory.scope(id, caller.environment) ?? [])
}

/** The scope of an object that was looked for in `scopes`. */
export function scopeIn(scopes: Scope[], { scopeId }: { scopeId: number }): Scope {
  return must(
    scopes.find((scope) => scope.scopeId === scopeId),
    'it was looked for in these scopes',
  )
}
