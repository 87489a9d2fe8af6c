import type { FastifyInstance, FastifyReply, FastifyRequest, HTTPMethods } from 'fastify'
import Type, { type Static, type TSchema } from 'typebox'
import { refuse } from '../../kernel/errors.ts'
import { idempotencyKeyCharsMax } from '../../kernel/limits.ts'
import type { WireNames } from '../../kernel/wire-names.ts'
import { closed, oneOf } from '../schema.ts'
import type { Access } from './caller.ts'
import { workspaceErrors } from './responses.ts'
import {
  type Answer,
  type Ask,
  asking,
  type Change,
  changing,
  type Download,
  type Look,
  reading,
  sending,
  type WorkspaceServices,
} from './route.ts'

/** One operation: what it takes, what it answers, how the reference calls it. Everything named here is checked. */
export interface Endpoint<Params extends TSchema, Query extends TSchema, Body extends TSchema> {
  path: string
  operationId: string
  tag: string
  summary: string
  description?: string
  params?: Params
  query?: Query
  body?: Body
  /** The answers that are no errors. */
  answers: Record<number, TSchema>
  /** Statuses of errors beyond those that every operation may answer. */
  errors?: number[]
  /** For bodies that may be compressed, or larger than others. */
  takes?: { bodyLimit: number; inflatedBytesMax: number }
  /** The request names in `If-Match` what it replaces. */
  ifMatch?: boolean
  /** Who may call it, where it is not a secret key and a session alike. */
  by?: Access['by']
  /** The least role of a session's user: `member`, and `admin` for DELETE, unless said otherwise. */
  role?: Access['role']
  /** False: a session of an unverified user will do. */
  verified?: boolean
  /** False: whatever the workspace's plan. */
  plan?: boolean
  /** The answer holds a secret: where it is kept for an Idempotency-Key, it is sealed. */
  secret?: boolean
}

/** What the caller sent, as the schemas have found it. */
export interface Input<Params extends TSchema, Query extends TSchema, Body extends TSchema> {
  params: Static<Params>
  query: Static<Query>
  body: Static<Body>
}

type Nothing = ReturnType<typeof closed<Record<never, never>>>

export interface Endpoints {
  get: Reading
  /** Answers with bytes that are no JSON. */
  file: Sending
  post: Changing
  put: Changing
  /** A POST that changes nothing of its own: see `asking`. */
  ask: Asking
  /** A POST that keeps what it did for an Idempotency-Key by rules of its own. */
  command: Asking
  patch: Changing
  delete: Changing
}

type Reading = <Params extends TSchema = Nothing, Query extends TSchema = Nothing>(
  endpoint: Endpoint<Params, Query, Nothing>,
  handler: (look: Look, input: Input<Params, Query, Nothing>) => Promise<unknown>,
) => void

type Sending = <Params extends TSchema = Nothing, Query extends TSchema = Nothing>(
  endpoint: Endpoint<Params, Query, Nothing>,
  handler: (look: Look, input: Input<Params, Query, Nothing>) => Promise<Download>,
) => void

type Asking = <Params extends TSchema = Nothing, Query extends TSchema = Nothing, Body extends TSchema = Nothing>(
  endpoint: Endpoint<Params, Query, Body>,
  handler: (ask: Ask, input: Input<Params, Query, Body>) => Promise<Answer>,
) => void

type Changing = <Params extends TSchema = Nothing, Query extends TSchema = Nothing, Body extends TSchema = Nothing>(
  endpoint: Endpoint<Params, Query, Body>,
  handler: (change: Change, input: Input<Params, Query, Body>) => Promise<Answer>,
) => void

/** Registers operations on `server`: reading ones, and changing ones that run in one transaction each. */
export function endpoints(server: FastifyInstance, services: WorkspaceServices & { names: WireNames }): Endpoints {
  const { environmentHeader, workspaceIdHeader } = services.names
  // For readers of the reference: the caller and the change read these headers themselves.
  const headers = {
    [environmentHeader]: Type.Optional(oneOf('test', 'live')),
    [workspaceIdHeader]: Type.Optional(Type.String({ description: 'The workspace, with a user session.' })),
  }
  const keyHeader = {
    'Idempotency-Key': Type.Optional(
      Type.String({
        minLength: 1,
        maxLength: idempotencyKeyCharsMax,
        description: 'The same key and body give the first answer again.',
      }),
    ),
  }

  const ifMatchHeader = {
    'If-Match': Type.Optional(Type.String({ description: 'The revision that was read; 400 without it.' })),
  }

  function add<Params extends TSchema, Query extends TSchema, Body extends TSchema>(
    method: HTTPMethods,
    endpoint: Endpoint<Params, Query, Body>,
    handler: (request: FastifyRequest, reply: FastifyReply) => Promise<FastifyReply>,
  ): void {
    const { path, operationId, tag, summary, description, params, query, body, answers, errors = [], takes } = endpoint
    const { by = 'key_or_session', role = method === 'DELETE' ? 'admin' : 'member' } = endpoint
    const { verified = true, plan = by === 'key_or_session' } = endpoint
    server.route({
      method,
      url: path,
      ...(takes && { bodyLimit: takes.bodyLimit }),
      config: {
        access: { by, role, verified, plan },
        ...(takes && { gzip: 'allowed', inflatedBytesMax: takes.inflatedBytesMax }),
      },
      schema: {
        operationId,
        summary,
        tags: [tag],
        security: by === 'key_or_session' ? [{ secretKey: [] }, { userSession: [] }] : [{ userSession: [] }],
        ...(description === undefined ? {} : { description }),
        ...(params === undefined ? {} : { params }),
        querystring: query ?? closed({}),
        headers: Type.Object({
          ...(by === 'key_or_session' ? headers : {}),
          ...(method === 'POST' ? keyHeader : {}),
          ...(endpoint.ifMatch ? ifMatchHeader : {}),
        }),
        ...(body === undefined ? {} : { body }),
        response: {
          ...answers,
          ...workspaceErrors(400, 401, ...(plan ? [402] : []), 403),
          // An Idempotency-Key may have been used for something else.
          ...workspaceErrors(
            ...errors,
            ...(method === 'POST' ? [409] : []),
            ...(body === undefined ? [] : [413]),
            429,
            503,
          ),
        },
      },
      // Where every field may be left out, so may the body.
      preValidation: (request, _reply, done) => {
        if (body !== undefined) request.body ??= {}
        done()
      },
      preHandler: (request, _reply, done) => {
        // An operation without a body knows no field.
        const unknown = body === undefined && request.body ? Object.keys(request.body)[0] : undefined
        if (unknown === undefined) done()
        else done(refuse('unknown_field', { param: unknown, message: `${unknown} is not known here` }))
      },
      handler,
    })
  }

  const change =
    (method: HTTPMethods): Changing =>
    (endpoint, handler) => {
      add(
        method,
        endpoint,
        changing(services, (under, request) => handler(under, inputOf(request)), { secret: endpoint.secret ?? false }),
      )
    }

  return {
    get: (endpoint, handler) => {
      add(
        'GET',
        endpoint,
        reading(services, (look, request) => handler(look, inputOf(request))),
      )
    },
    file: (endpoint, handler) => {
      add(
        'GET',
        endpoint,
        sending(services, (look, request) => handler(look, inputOf(request))),
      )
    },
    post: change('POST'),
    put: change('PUT'),
    ask: (endpoint, handler) => {
      add(
        'POST',
        endpoint,
        asking(services, (ask, request) => handler(ask, inputOf(request))),
      )
    },
    command: (endpoint, handler) => {
      add(
        'POST',
        endpoint,
        asking(services, (ask, request) => handler(ask, inputOf(request)), { ownKey: true }),
      )
    },
    patch: change('PATCH'),
    delete: change('DELETE'),
  }
}

/** The casts are true: the framework has held each part against its schema before any handler runs. */
function inputOf<Params extends TSchema, Query extends TSchema, Body extends TSchema>({
  params,
  query,
  body,
}: FastifyRequest): Input<Params, Query, Body> {
  return { params: params as Static<Params>, query: query as Static<Query>, body: body as Static<Body> }
}
