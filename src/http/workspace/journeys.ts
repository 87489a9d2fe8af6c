import Type from 'typebox'
import { parseCustomerId, wireCustomerId } from '../../customers/index.ts'
import type { Pool } from '../../db/pool.ts'
import {
  type ApplyServices,
  advanceJourney,
  cancelJourney,
  getJourney,
  type JourneyEdit,
  listJourneys,
  listLegs,
  listTransitions,
  pauseJourneysOf,
  resumeJourneysOf,
} from '../../journeys/index.ts'
import type { Clock } from '../../kernel/clock.ts'
import { refuse } from '../../kernel/errors.ts'
import { isUuid } from '../../kernel/ids.ts'
import { reasonCharsMax } from '../../kernel/limits.ts'
import type { Scope } from '../../tenancy/index.ts'
import { closed, oneOf } from '../schema.ts'
import { scopeIn } from './caller.ts'
import { CustomerObject, findCustomer, showCustomer } from './customers.ts'
import type { Endpoints } from './endpoint.ts'
import { JourneyObject, LegObject, showJourney, showLeg, showTransition, TransitionObject } from './journey-objects.ts'
import { listAnswer, listOf, listQuery, pageOf } from './list.ts'
import { byId, id, idOrKey, projectId } from './parts.ts'
import type { Answer, Change } from './route.ts'

const tag = 'Journeys'
const journeyId = closed({ id: Type.String({ pattern: uuidPattern() }) })
const position = new RegExp(uuidPattern())
const number = /^[0-9]{1,9}$/
const status = oneOf('armed', 'on_device', 'waiting', 'ended')

function uuidPattern(): string {
  return '^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$'
}

export interface JourneyApiServices {
  pool: Pool
  clock: Clock
  journeys: ApplyServices
}

export function journeys(to: Endpoints, services: JourneyApiServices): void {
  reads(to, services)
  commands(to, services)
  ofCustomers(to, services)
}

function reads({ get }: Endpoints, { pool }: JourneyApiServices): void {
  get(
    {
      path: '/journeys',
      operationId: 'listJourneys',
      tag,
      summary: 'List journeys',
      description: 'Newest first, as their ids say.',
      query: closed({
        ...listQuery,
        project_id: projectId,
        customer_id: Type.Optional(id),
        experience_id: Type.Optional(idOrKey),
        status: Type.Optional(status),
      }),
      answers: { 200: listOf(JourneyObject) },
      errors: [404],
    },
    async (look, { query }) => {
      const page = pageOf(query, position)
      const scope = look.scope(query.project_id)
      const customerId = query.customer_id === undefined ? null : await customerIn(pool, scope, query.customer_id)
      const where = { customerId, experience: query.experience_id ?? null, status: query.status ?? null }
      const found = await listJourneys(pool, scope, where, page)
      return listAnswer(found, page, { show: (one) => showJourney(one, scope), positionOf: (one) => one.id })
    },
  )

  get(
    {
      path: '/journeys/:id',
      operationId: 'getJourney',
      tag,
      summary: 'Get a journey',
      params: journeyId,
      answers: { 200: JourneyObject },
      errors: [404],
    },
    async (look, { params }) => {
      const scopes = look.scopes()
      const journey = await getJourney(pool, scopes, params.id)
      return showJourney(journey, scopeIn(scopes, journey))
    },
  )

  get(
    {
      path: '/journeys/:id/transitions',
      operationId: 'listJourneyTransitions',
      tag,
      summary: "List a journey's transitions",
      description: 'Every step it took, newest first: what it was told, and what came of it.',
      params: journeyId,
      query: closed(listQuery),
      answers: { 200: listOf(TransitionObject) },
      errors: [404],
    },
    async (look, { params, query }) => {
      const page = pageOf(query, number)
      const scopes = look.scopes()
      const journey = await getJourney(pool, scopes, params.id)
      return listAnswer(await listTransitions(pool, journey, page), page, {
        show: (one) => showTransition(one, journey, scopeIn(scopes, journey)),
        positionOf: ({ rev }) => String(rev),
      })
    },
  )

  get(
    {
      path: '/journeys/:id/legs',
      operationId: 'listJourneyLegs',
      tag,
      summary: "List a journey's legs",
      description: 'What was offered to devices, newest first, and what they said.',
      params: journeyId,
      query: closed(listQuery),
      answers: { 200: listOf(LegObject) },
      errors: [404],
    },
    async (look, { params, query }) => {
      const page = pageOf(query, number)
      const scopes = look.scopes()
      const journey = await getJourney(pool, scopes, params.id)
      return listAnswer(await listLegs(pool, journey, page), page, {
        show: (one) => showLeg(one, journey, scopeIn(scopes, journey)),
        positionOf: ({ generation }) => String(generation),
      })
    },
  )
}

function commands({ post }: Endpoints, { clock, journeys: services }: JourneyApiServices): void {
  post(
    {
      path: '/journeys/:id/cancel',
      operationId: 'cancelJourney',
      tag,
      summary: 'Cancel a journey',
      description: 'No later leg is offered. A leg that a device runs already goes on there.',
      params: journeyId,
      body: closed({
        reason: Type.Optional(Type.String({ minLength: 1, maxLength: reasonCharsMax, 'x-storable': true })),
      }),
      answers: { 200: JourneyObject },
      errors: [404, 409],
    },
    async (change, { params, body }) => {
      const command = { id: params.id, reason: body.reason ?? 'api', now: clock.now() }
      return edited(change, 'cancel', await cancelJourney(change.tx, change.scopes(), command, services))
    },
  )

  post(
    {
      path: '/journeys/:id/advance',
      operationId: 'advanceJourney',
      tag,
      summary: "Let a journey's next timer fire",
      description: 'In `test` only: as if its time were now. What follows is counted from now.',
      params: journeyId,
      answers: { 200: JourneyObject },
      errors: [404, 409],
    },
    async (change, { params }) => {
      if (change.caller.environment !== 'test') {
        throw refuse('invalid_request', { message: 'Journeys are advanced in test only.' })
      }
      const command = { id: params.id, now: clock.now() }
      return edited(change, 'advance', await advanceJourney(change.tx, change.scopes(), command, services))
    },
  )
}

async function edited(change: Change, action: string, { before, after }: JourneyEdit): Promise<Answer> {
  const scope = scopeIn(change.scopes(), after)
  const states = { before: showJourney(before, scope), after: showJourney(after, scope) }
  await change.audit(action, 'journey', after.id, states)
  return { status: 200, body: states.after }
}

function ofCustomers({ get, post }: Endpoints, { pool, clock, journeys: services }: JourneyApiServices): void {
  get(
    {
      path: '/customers/:id/journeys',
      operationId: 'listCustomerJourneys',
      tag,
      summary: "List a customer's journeys",
      description: 'Newest first, as their ids say.',
      params: byId,
      query: closed({ ...listQuery, status: Type.Optional(status) }),
      answers: { 200: listOf(JourneyObject) },
      errors: [404],
    },
    async (look, { params, query }) => {
      const page = pageOf(query, position)
      const { customer, scope } = await findCustomer(pool, look.scopes(), params.id)
      const where = { customerId: customer.id, experience: null, status: query.status ?? null }
      const found = await listJourneys(pool, scope, where, page)
      return listAnswer(found, page, { show: (one) => showJourney(one, scope), positionOf: (one) => one.id })
    },
  )

  const add = (verb: 'pause' | 'resume', summary: string, description: string) => {
    post(
      {
        path: `/customers/:id/${verb}_journeys`,
        operationId: `${verb}CustomerJourneys`,
        tag,
        summary,
        description,
        params: byId,
        answers: { 200: CustomerObject },
        errors: [404],
      },
      async (change, { params }) => {
        const { customer, scope } = await findCustomer(change.tx, change.scopes(), params.id)
        const command = { customerId: customer.id, now: clock.now() }
        const run = verb === 'pause' ? pauseJourneysOf : resumeJourneysOf
        await run(change.tx, scope, command, services)
        await change.audit(`${verb}_journeys`, 'customer', wireCustomerId(customer.id), {})
        return { status: 200, body: showCustomer(customer, scope) }
      },
    )
  }
  add('pause', "Pause a customer's journeys", 'None begins, and those under way rest. Repeated, it answers the same.')
  add('resume', "Resume a customer's journeys", 'What fell due meanwhile happens within a minute.')
}

/** A customer that is none has no journeys. */
async function customerIn(pool: Pool, scope: Scope, wireId: string): Promise<string> {
  const customerId = parseCustomerId(wireId)
  if (customerId === null || !isUuid(customerId)) throw refuse('not_found', { param: 'customer_id' })
  return (await findCustomer(pool, [scope], wireId)).customer.id
}
