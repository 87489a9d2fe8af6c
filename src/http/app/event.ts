import type { FastifyInstance } from 'fastify'
import Type from 'typebox'
import { type EventLog, type Normalised, normalise } from '../../events/index.ts'
import type { Clock } from '../../kernel/clock.ts'
import { type Refusal, refuse } from '../../kernel/errors.ts'
import { eventBodyBytesMax } from '../../kernel/limits.ts'
import type { Scope } from '../../tenancy/index.ts'
import { ok } from '../answer.ts'
import { oneOf } from '../schema.ts'
import { eventFields } from './event-fields.ts'
import type { Operation } from './operation.ts'
import { appErrors } from './responses.ts'
import { KeyQuery } from './status.ts'

export interface EventOptions {
  clock: Clock
  append: EventLog['append']
  customerIdHint: (scope: Scope, distinctId: string) => Promise<string> | string
}

const Accepted = Type.Object(
  {
    status: oneOf('ok'),
    eventId: Type.String({ description: 'The event UUID.' }),
    customerIdHint: Type.String(),
    accepted: Type.Integer(),
    queued: Type.Boolean(),
    payload: Type.Record(Type.String(), Type.Unknown(), { description: 'The known fields after normalisation.' }),
  },
  { title: 'EventAccepted' },
)

/** `POST /event`: one event, acknowledged when it is stored. */
export function event({ clock, append, customerIdHint }: EventOptions): Operation<unknown> {
  return {
    path: '/event',
    bodyLimit: eventBodyBytesMax,
    // Judged by normalise(), which names every reason.
    config: { gzip: 'allowed', documentedBody: Type.Object({ apiKey: Type.String(), ...eventFields }) },
    schema: {
      operationId: 'recordEvent',
      summary: 'Record one event',
      description: 'A 200 means stored. Effects on properties, segments and delivery follow within moments.',
      tags: ['Events'],
      response: { 200: Accepted, ...appErrors(400, 401, 403, 410, 413, 503) },
    },
    run: async ({ app, body }) => {
      const normalised = normalise(body, { receivedAt: clock.now(), trust: 'device' })
      if (normalised.kind !== 'event') throw refusalOf(normalised)
      const accepted = normalised.event
      const hint = customerIdHint(app, accepted.distinctId)
      if ((await append(app, accepted)) === 'deleted') throw refuse('customer_deleted')
      return ok(
        `{"status":"ok","eventId":"${accepted.uuid}","customerIdHint":"${typeof hint === 'string' ? hint : await hint}","accepted":1,"queued":true,"payload":${accepted.knownText}}`,
      )
    },
  }
}

/** `GET /event`: tries the key, stores nothing. */
export function eventTest(server: FastifyInstance): void {
  server.get('/event', {
    schema: {
      operationId: 'testEventKey',
      summary: 'Test event authentication',
      tags: ['Events'],
      querystring: KeyQuery,
      response: { 200: Type.Object({ status: oneOf('ok'), message: Type.String() }), ...appErrors(401, 403) },
    },
    handler: (_request, reply) => reply.send({ status: 'ok', message: 'Event GET endpoint (test only)' }),
  })
}

function refusalOf(normalised: Exclude<Normalised, { kind: 'event' }>): Refusal {
  if (normalised.kind === 'misdirected') {
    const { issue, lane, endpoint } = normalised
    return refuse('invalid_request', {
      message: issue.message,
      issues: [publicIssue(issue)],
      details: { lane, endpoint },
    })
  }
  const { issues, code } = normalised
  return refuse(code === 'event_too_large' ? 'payload_too_large' : 'invalid_request', {
    message: issues[0].message,
    issues: issues.map(publicIssue),
  })
}

function publicIssue({ path, message }: { path: string; message: string }) {
  return { path, message }
}
