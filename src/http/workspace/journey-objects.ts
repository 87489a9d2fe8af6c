import Type, { type Static } from 'typebox'
import { wireCustomerId } from '../../customers/index.ts'
import type { JourneyRecord, LegRecord, TransitionRecord } from '../../journeys/index.ts'
import type { Scope } from '../../tenancy/index.ts'
import { instant, nullable, nullableString, oneOf } from '../schema.ts'
import { instantOf, nullableInstantOf } from './amount.ts'
import { environment } from './parts.ts'

const object = Type.Record(Type.String(), Type.Unknown())
const moment = Type.Object({ event_id: Type.String(), occurred_at: instant })

export const JourneyObject = Type.Object(
  {
    object: Type.Literal('journey'),
    id: Type.String({ description: 'UUID version 7, made by a device or by the service.' }),
    environment,
    experience_id: Type.String(),
    version_id: Type.String({ description: 'The version that it began with, and stays on.' }),
    app_id: Type.String(),
    customer_id: Type.String(),
    origin: oneOf('device', 'api', 'event', 'segment', 'server_event'),
    occurrence: Type.String({ description: 'What began it, such as `api:` and an Idempotency-Key.' }),
    status: oneOf('armed', 'on_device', 'waiting', 'ended'),
    end_reason: nullable(oneOf('completed', 'exited', 'expired', 'cancelled', 'superseded', 'failed', 'refused')),
    end_detail: nullableString,
    held: Type.Boolean({ description: 'It rests: its arms are withheld and its timers wait.' }),
    generation: Type.Integer({ description: 'Of the newest leg offered.' }),
    rev: Type.Integer({ description: 'Counts its transitions.' }),
    section_key: nullableString,
    step_id: nullableString,
    trust: oneOf('device', 'server'),
    context: Type.Object({ event: object, responses: object }),
    conversion: Type.Object({
      started_at: instant,
      revision: Type.Integer(),
      basis: nullable(moment),
      conversion: nullable(moment),
    }),
    started_at: instant,
    expires_at: instant,
    ended_at: nullable(instant),
    next_timer: nullable(Type.Object({ kind: oneOf('step', 'arm', 'run', 'life'), due_at: instant })),
    created_at: instant,
  },
  { title: 'Journey' },
)

export const TransitionObject = Type.Object(
  {
    object: Type.Literal('journey_transition'),
    id: Type.String(),
    environment,
    journey_id: Type.String(),
    rev: Type.Integer(),
    input: object,
    from: Type.String({ description: 'Such as `armed:offer`, and `none` before the first.' }),
    to: Type.String(),
    effects: Type.Array(object),
    at: instant,
    created_at: instant,
  },
  { title: 'JourneyTransition' },
)

export const LegObject = Type.Object(
  {
    object: Type.Literal('journey_leg'),
    id: Type.String(),
    environment,
    journey_id: Type.String(),
    generation: Type.Integer(),
    leg_id: Type.String(),
    section_key: Type.String(),
    descriptor_sha256: Type.Unsafe<string | null>({
      ...nullableString,
      description: 'Of the newest release of the version in the app.',
    }),
    status: oneOf('armed', 'on_device', 'completed', 'expired', 'lost', 'withdrawn'),
    armed_at: Type.Unsafe<string | null>({ ...nullable(instant), description: 'Null: a device began with it.' }),
    started_at: nullable(instant),
    completed_at: nullable(instant),
    outcome: nullableString,
    outputs: nullable(object),
    dispositions: Type.Array(Type.String(), { description: 'What was odd about its reports, such as `late`.' }),
    created_at: instant,
  },
  { title: 'JourneyLeg' },
)

export function showJourney(journey: JourneyRecord, scope: Scope): Static<typeof JourneyObject> {
  const { conversion, nextTimer } = journey
  const shown = (one: { eventId: string; occurredAt: number } | undefined) =>
    one ? { event_id: one.eventId, occurred_at: instantOf(one.occurredAt) } : null
  return {
    object: 'journey',
    id: journey.id,
    environment: scope.environment,
    experience_id: journey.experienceId,
    version_id: journey.versionId,
    app_id: journey.appId,
    customer_id: wireCustomerId(journey.customerId),
    origin: journey.origin,
    occurrence: journey.occurrence,
    status: journey.status,
    end_reason: journey.endReason,
    end_detail: journey.endDetail,
    held: journey.held,
    generation: journey.generation,
    rev: journey.rev,
    section_key: journey.sectionKey,
    step_id: journey.stepId,
    trust: journey.trust,
    context: { event: journey.context.event, responses: journey.context.responses },
    conversion: {
      started_at: instantOf(conversion.startedAt),
      revision: conversion.revision,
      basis: shown(conversion.basis),
      conversion: shown(conversion.conversion),
    },
    started_at: instantOf(journey.startedAt),
    expires_at: instantOf(journey.expiresAt),
    ended_at: nullableInstantOf(journey.endedAt),
    next_timer: nextTimer && { kind: nextTimer.kind, due_at: instantOf(nextTimer.dueAt) },
    created_at: instantOf(journey.createdAt),
  }
}

export function showTransition(
  { rev, at, input, from, to, effects }: TransitionRecord,
  { id: of }: JourneyRecord,
  scope: Scope,
) {
  return {
    object: 'journey_transition',
    id: `${of}.${rev}`,
    environment: scope.environment,
    journey_id: of,
    ...{ rev, input, from, to, effects, at: instantOf(at), created_at: instantOf(at) },
  }
}

export function showLeg(leg: LegRecord, journey: JourneyRecord, scope: Scope) {
  return {
    object: 'journey_leg',
    id: `${journey.id}.${leg.generation}`,
    environment: scope.environment,
    journey_id: journey.id,
    generation: leg.generation,
    leg_id: leg.legId,
    section_key: leg.sectionKey,
    descriptor_sha256: leg.descriptorSha256,
    status: leg.status,
    armed_at: nullableInstantOf(leg.armedAt),
    started_at: nullableInstantOf(leg.startedAt),
    completed_at: nullableInstantOf(leg.completedAt),
    outcome: leg.outcome,
    outputs: leg.outputs,
    dispositions: leg.dispositions,
    created_at: instantOf(leg.armedAt ?? leg.startedAt ?? journey.createdAt),
  }
}
