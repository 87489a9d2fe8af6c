import { hash } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { type Pool, type Tx, unavailable } from '../../db/pool.ts'
import { must } from '../../kernel/assert.ts'
import { canonicalJson } from '../../kernel/canonical-json.ts'
import { refuse } from '../../kernel/errors.ts'
import { idempotencyKeyCharsMax } from '../../kernel/limits.ts'
import { seal, unseal } from '../../kernel/seal.ts'
import {
  claimIdempotencyKey,
  type Directory,
  findIdempotentAnswer,
  insertAudit,
  type SavedAnswer,
  type Scope,
  saveIdempotentAnswer,
  touchCatalogue,
  touchTenancy,
} from '../../tenancy/index.ts'
import { type Caller, scopeOf, scopesOf } from './caller.ts'

/** What every resource of the Workspace API is built with. */
export interface WorkspaceServices {
  pool: Pool
  directory: Directory
  /** Seals saved answers that hold a secret. */
  sealingKey: Buffer
}

const sealContext = 'idempotent-answer'

/** A change under way: one transaction, one audit row, one answer. */
export interface Change {
  tx: Tx
  caller: Caller
  /** Of the request; lower case. */
  header(name: string): string | undefined
  /** The scope of `project_id`, or of the workspace's only project. */
  scope(projectId?: string): Scope
  /** Where an object named by id may lie: in that project, or in any of the workspace. */
  scopes(projectId?: string): Scope[]
  /**
   * Writes the audit row. `before` and `after` are the objects as the API shows them; `workspaceId` is whose log it is, the
   * caller's unless named.
   */
  audit(
    action: string,
    object: string,
    id: string,
    states: { before?: unknown; after?: unknown; workspaceId?: string },
  ): Promise<void>
  /** Keys, apps or projects changed: every process hears of it, this one before the answer. */
  tenancyChanged(): Promise<void>
  /** Features or Products of the scope changed. */
  catalogueChanged(scope: Scope): Promise<void>
}

export interface Answer {
  status: number
  body: unknown
}

/**
 * Runs a changing handler: in one transaction, once per Idempotency-Key on POST, and with this process's memory brought up
 * to date before the caller hears of the change.
 */
export function changing<Request extends FastifyRequest>(
  { pool, directory, sealingKey }: WorkspaceServices,
  handler: (change: Change, request: Request) => Promise<Answer>,
  { secret = false }: { secret?: boolean } = {},
) {
  return async (request: Request, reply: FastifyReply): Promise<FastifyReply> => {
    const caller = must(request.caller, 'the route is authenticated')
    const idempotencyKey = request.method === 'POST' ? idempotencyKeyOf(request) : undefined
    let refresh = false
    const work = async (tx: Tx) => {
      if (idempotencyKey !== undefined) {
        const fingerprint = fingerprintOf(request, caller)
        const saved = await claimIdempotencyKey(tx, caller.workspaceId, idempotencyKey, fingerprint)
        if (saved) {
          if (!saved.fingerprint.equals(fingerprint)) throw refuse('idempotency_conflict')
          const text = secret ? must(unseal(sealingKey, sealContext, saved.body), 'sealed below') : saved.body
          // Whoever asks again lost the first answer, often with the connection that this process would have heard by.
          refresh = true
          return { status: saved.status, text, replayed: true }
        }
      }
      const { status, body } = await handler(
        {
          tx,
          caller,
          header: (name) => request.headers[name]?.toString(),
          scope: (projectId) => scopeOf(directory, caller, projectId),
          scopes: (projectId) => scopesOf(directory, caller, projectId),
          audit: (action, object, id, { before, after, workspaceId = caller.workspaceId }) =>
            insertAudit(tx, {
              workspaceId,
              actor: caller.actor,
              action,
              object,
              objectId: id,
              beforeDigest: digest(before),
              afterDigest: digest(after),
              requestId: request.id,
            }),
          tenancyChanged: () => {
            refresh = true
            return touchTenancy(tx)
          },
          catalogueChanged: (scope) => {
            refresh = true
            return touchCatalogue(tx, scope.scopeId)
          },
        },
        request,
      )
      const text = JSON.stringify(body)
      if (idempotencyKey !== undefined) {
        const saved = secret ? seal(sealingKey, sealContext, text) : text
        await saveIdempotentAnswer(tx, caller.workspaceId, idempotencyKey, { status, body: saved })
      }
      return { status, text, replayed: false }
    }
    const answer = await pool.transaction(work).catch((error: unknown) => {
      throw unavailable(error, 'service_unavailable')
    })
    if (refresh) {
      // The change is done whatever happens here; this process then hears of it as every other one does.
      await directory.refresh().catch((error: unknown) => {
        request.log.warn({ err: error, request_id: request.id }, 'a change was not read back at once')
      })
    }
    if (answer.replayed) reply.header('idempotent-replayed', 'true')
    return reply.code(answer.status).header('content-type', 'application/json; charset=utf-8').send(answer.text)
  }
}

/** What the handler of a POST that changes nothing of its own gets. */
export interface Ask extends Look {
  /** Of the request; lower case. */
  header(name: string): string | undefined
  /** Of the answer, also when it is a refusal. */
  tell(header: string, value: string | number): void
  /** Aborted when the caller has gone without the answer. */
  gone: AbortSignal
}

/**
 * Runs a handler outside of any transaction: it only reads, or repeating it changes nothing. The answer is saved for an
 * Idempotency-Key afterwards; held open meanwhile, the transaction would hold every lane back. `ownKey`: the handler keeps
 * what it did for a key by rules of its own.
 */
export function asking<Request extends FastifyRequest>(
  services: WorkspaceServices,
  handler: (ask: Ask, request: Request) => Promise<Answer>,
  { ownKey = false }: { ownKey?: boolean } = {},
) {
  const { pool, directory } = services
  return async (request: Request, reply: FastifyReply): Promise<FastifyReply> => {
    const caller = must(request.caller, 'the route is authenticated')
    const send = ({ status, body }: { status: number; body: string }, { replayed = false } = {}) => {
      if (replayed) reply.header('idempotent-replayed', 'true')
      return reply.code(status).header('content-type', 'application/json; charset=utf-8').send(body)
    }
    const { workspaceId } = caller
    const key = ownKey ? undefined : idempotencyKeyOf(request)
    const fingerprint = key === undefined ? undefined : fingerprintOf(request, caller)
    const replay = (saved: SavedAnswer | undefined) => {
      if (saved && fingerprint && !saved.fingerprint.equals(fingerprint)) throw refuse('idempotency_conflict')
      return saved
    }
    const gone = new AbortController()
    reply.raw.once('close', () => {
      if (!reply.raw.writableFinished) gone.abort()
    })
    try {
      const before = key === undefined ? undefined : replay(await findIdempotentAnswer(pool, workspaceId, key))
      if (before) return send(before, { replayed: true })
      const ask: Ask = {
        caller,
        scope: (projectId) => scopeOf(directory, caller, projectId),
        scopes: (projectId) => scopesOf(directory, caller, projectId),
        header: (name) => request.headers[name]?.toString(),
        tell: (header, value) => void reply.header(header, String(value)),
        gone: gone.signal,
      }
      const { status, body } = await handler(ask, request)
      const text = JSON.stringify(body)
      if (key !== undefined && fingerprint !== undefined) {
        const other = await pool.transaction(async (tx) => {
          const saved = replay(await claimIdempotencyKey(tx, workspaceId, key, fingerprint))
          if (!saved) await saveIdempotentAnswer(tx, workspaceId, key, { status, body: text })
          return saved
        })
        if (other) return send(other, { replayed: true })
      }
      return send({ status, body: text })
    } catch (error) {
      throw unavailable(error, 'service_unavailable')
    }
  }
}

/** Bytes that are sent as they are. */
export interface Download {
  type: string
  name: string
  bytes: Buffer
}

export function sending<Request extends FastifyRequest>(
  { directory }: WorkspaceServices,
  handler: (look: Look, request: Request) => Promise<Download>,
) {
  return async (request: Request, reply: FastifyReply): Promise<FastifyReply> => {
    const caller = must(request.caller, 'the route is authenticated')
    const look: Look = {
      caller,
      scope: (projectId) => scopeOf(directory, caller, projectId),
      scopes: (projectId) => scopesOf(directory, caller, projectId),
    }
    const { type, name, bytes } = await handler(look, request).catch((error: unknown) => {
      throw unavailable(error, 'service_unavailable')
    })
    return reply
      .header('content-type', type)
      .header('content-disposition', `attachment; filename="${name}"`)
      .send(bytes)
  }
}

/** What a reading handler gets. */
export interface Look {
  caller: Caller
  scope(projectId?: string): Scope
  scopes(projectId?: string): Scope[]
}

export function reading<Request extends FastifyRequest>(
  { directory }: WorkspaceServices,
  handler: (look: Look, request: Request) => Promise<unknown>,
) {
  return async (request: Request, reply: FastifyReply): Promise<FastifyReply> => {
    const caller = must(request.caller, 'the route is authenticated')
    const look: Look = {
      caller,
      scope: (projectId) => scopeOf(directory, caller, projectId),
      scopes: (projectId) => scopesOf(directory, caller, projectId),
    }
    const body = await handler(look, request).catch((error: unknown) => {
      throw unavailable(error, 'service_unavailable')
    })
    return reply.header('content-type', 'application/json; charset=utf-8').send(JSON.stringify(body))
  }
}

function idempotencyKeyOf(request: FastifyRequest): string | undefined {
  const key = request.headers['idempotency-key']
  if (key === undefined) return undefined
  if (typeof key !== 'string' || key.length < 1 || key.length > idempotencyKeyCharsMax) {
    throw refuse('invalid_request', {
      param: 'Idempotency-Key',
      message: `Idempotency-Key must have 1 to ${idempotencyKeyCharsMax} characters`,
    })
  }
  return key
}

/** The same request: method, path, environment and body. */
function fingerprintOf(request: FastifyRequest, caller: Caller): Buffer {
  return hash(
    'sha256',
    canonicalJson([request.method, request.url, caller.environment, request.body ?? null]),
    'buffer',
  )
}

function digest(state: unknown): string | null {
  return state === undefined ? null : hash('sha256', canonicalJson(state))
}
