import type { FastifyRequest } from 'fastify'
import type { Pool } from '../../db/pool.ts'
import { must } from '../../kernel/assert.ts'
import { type ErrorCode, refuse } from '../../kernel/errors.ts'
import type { WireNames } from '../../kernel/wire-names.ts'
import {
  type Directory,
  type Environment,
  findSession,
  hasRole,
  looksLikePublishableKey,
  looksLikeSecretKey,
  type Marks,
  type Scope,
  type SecretKeyHolder,
  type Session,
  type User,
} from '../../tenancy/index.ts'

/** Who may call an operation. */
export interface Access {
  /**
   * `key_or_session`: a secret key, or a session that names a workspace in its header. `workspace_session`: a session, the
   * workspace is `:id` of the path. `session`: a session, whatever its workspaces.
   */
  by: 'key_or_session' | 'workspace_session' | 'session'
  /** What the user of a session has to be in the workspace. */
  role: 'member' | 'admin'
  /** Whether the user of a session has to have a verified e-mail address. */
  verified: boolean
  /** Whether the workspace's plan is looked at: people can always be managed, and leaked keys revoked. */
  plan: boolean
}

/** Who calls the Workspace API, and in which environment. */
export interface Caller {
  /** Whose data it is about. For what users do outside of workspaces: the user's id, which no workspace has. */
  workspaceId: string
  environment: Environment
  actor: { type: 'secret_key' | 'user'; id: string }
  /** Null behind a secret key. */
  session: Session | null
}

declare module 'fastify' {
  interface FastifyRequest {
    /** Set by `authenticateCaller` before validation. */
    caller: Caller | null
  }
  interface FastifyContextConfig {
    access?: Access
  }
}

export interface CallerOptions {
  directory: Directory
  marks: Marks
  names: WireNames
  /** Where sessions are looked up. */
  pool: Pool
}

/** `Authorization: Bearer …`, then role and plan, then the environment header: 401, 403, 402, 400. */
export function authenticateCaller(options: CallerOptions) {
  const { names } = options
  const environmentHeader = names.environmentHeader.toLowerCase()
  return async (request: FastifyRequest): Promise<void> => {
    const access = must(request.routeOptions.config.access, 'every operation says who may call it')
    const token = /^Bearer +(\S+)$/i.exec(request.headers.authorization ?? '')?.[1] ?? ''
    if (looksLikePublishableKey(token)) throw refuse('key_kind_invalid')
    const caller =
      looksLikeSecretKey(token) || (token === '' && access.by === 'key_or_session')
        ? callerOfKey(options, access, token)
        : await callerOfSession(options, access, token, request)
    const environment = request.headers[environmentHeader] ?? 'live'
    if (environment !== 'test' && environment !== 'live') {
      throw refuse('invalid_request', { param: names.environmentHeader, message: 'must be test or live' })
    }
    if (caller.actor.type === 'secret_key') options.marks.keyUsed('secret', caller.actor.id)
    request.caller = { ...caller, environment }
  }
}

type Named = Omit<Caller, 'environment'>

function callerOfKey({ directory }: CallerOptions, access: Access, key: string): Named {
  if (access.by !== 'key_or_session') throw refuse('key_kind_invalid')
  const holder = directory.secretKey(key)
  if (!holder) throw refuse('invalid_api_key')
  refuseWithoutPlan(holder.access)
  return { workspaceId: holder.workspaceId, actor: { type: 'secret_key', id: holder.keyId }, session: null }
}

async function callerOfSession(
  { pool, names }: CallerOptions,
  access: Access,
  token: string,
  request: FastifyRequest,
): Promise<Named> {
  const workspaceId = workspaceIdOf(request, access, names)
  const session = token === '' ? undefined : await findSession(pool, token, workspaceId ?? null)
  if (!session) throw refuse(...unknownSession[access.by])
  const { user, membership } = session
  const actor = { type: 'user' as const, id: user.id }
  if (access.by === 'session') {
    if (access.verified && !user.emailVerified) throw refuse('email_verification_required')
    return { workspaceId: user.id, actor, session }
  }
  if (workspaceId === undefined) {
    const header = names.workspaceIdHeader
    throw refuse('invalid_request', { param: header, message: `a session names its workspace in ${header}` })
  }
  if (!membership) throw refuse('workspace_access_denied')
  if (access.verified && !user.emailVerified) throw refuse('email_verification_required')
  if (!hasRole(membership.role, access.role)) throw refuse('workspace_admin_required')
  if (access.plan) refuseWithoutPlan(membership.access)
  return { workspaceId: membership.workspaceId, actor, session }
}

/** An unknown token may have been meant as a key where keys are taken. */
const ended: [ErrorCode, { message: string }] = [
  'invalid_credentials',
  { message: 'The session token is missing, invalid or expired.' },
]
const unknownSession: Record<Access['by'], [ErrorCode, { message: string }?]> = {
  key_or_session: ['invalid_api_key'],
  workspace_session: ended,
  session: ended,
}

/** Undefined: none was named. What is no id is the id of no workspace. */
function workspaceIdOf(request: FastifyRequest, { by }: Access, names: WireNames): string | undefined {
  if (by === 'session') return undefined
  const { id } = request.params as { id?: string } // of the path, if it has one
  const named = by === 'workspace_session' ? id : request.headers[names.workspaceIdHeader.toLowerCase()]
  if (named === undefined) return undefined
  return typeof named === 'string' && /^ws_\w{1,60}$/.test(named) ? named : ''
}

function refuseWithoutPlan(access: SecretKeyHolder['access']): void {
  if (access === 'api_disabled') throw refuse('api_access_required')
  if (access === 'payment_required') throw refuse('billing_payment_required')
}

/** The session of an operation that takes no key. */
export function sessionOf({ session }: Caller): Session {
  return must(session, 'the operation takes no key')
}

/** Who calls an operation that takes no key. */
export function userOf(caller: Caller): User {
  return sessionOf(caller).user
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
