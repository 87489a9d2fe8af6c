import type { Json } from '../events/index.ts'
import type { DeclaredField, Experiment, Trial, TryProfiles } from '../experiences/index.ts'
import { assemble, type Trace } from './assemble.ts'
import { bytesOf } from './body.ts'
import { checkProfile } from './check-profile.ts'
import type { OpenJourney, Person, Wire } from './types.ts'

/** Some moment: nobody of these is there. */
const now = Date.UTC(2026, 0, 1)

/**
 * Assembles what a publication would be told as: in each locale that differs, for somebody of whom nothing is known and for somebody of whom
 * everything is, its first leg as `new` and every leg as `continue`. Gives the first rule that is broken.
 */
export function createTryProfiles(wire: Wire): TryProfiles {
  return (trial) => {
    for (const locale of trial.locales) {
      for (const isKnown of [false, true]) {
        const rule = tryOne(wire, trial, { locale, isKnown })
        if (rule !== undefined) return `the profile in ${locale}: ${rule}`
      }
    }
    return undefined
  }
}

interface Asking {
  locale: string
  isKnown: boolean
}

function tryOne(wire: Wire, trial: Trial, asking: Asking): string | undefined {
  const made = profileOf(wire, trial, asking)
  if (typeof made === 'string') return made
  const { app, environment, check } = trial
  return checkProfile(made, { wire, app, environment, check })
}

/** Its bytes; or why a leg is left out of it. */
export function profileOf(wire: Wire, trial: Trial, { locale, isKnown }: Asking): Buffer | string {
  const { app, current } = trial
  // Who is let in is not asked here.
  const open = { ...current, status: 'live', eligibility: null } as const
  const delivery = {
    ...trial.delivery,
    current: new Map([[app.appId, [open]]]),
    pinned: () => open,
    experiments: isKnown ? concluded(trial) : new Map(),
  }
  const catalogue = {
    ...{ revision: delivery.revision, clockOffsetMs: 0, published: new Map(), byId: new Map(), poolsOf: new Map() },
  }
  const trace: Trace = { experiences: new Map(), journeys: new Map() }
  const person = isKnown ? somebody(trial) : stranger(trial)
  const assembly = assemble({ catalogue, delivery, wire, app, person, locale }, trace)
  if (assembly.kind === 'missing') return 'it asks for more than was published'
  const reasons = [...trace.experiences.values(), ...trace.journeys.values()].map(({ reason }) => reason)
  const left = reasons.find((reason) => reason !== null && !isOfNoMatter.has(reason))
  return left ? `a leg is left out: ${left}` : bytesOf(assembly.body)
}

/** The server begins it; or together the legs are more than a profile takes. */
const isOfNoMatter = new Set<string>(['server_enrolled', 'limit_arms', 'limit_bytes'])

/** Of whom is known what has to be. */
function stranger(trial: Trial): Person {
  const { delivery, current } = trial
  const { trigger } = current
  const named = 'segmentId' in trigger ? delivery.segments.get(trigger.segmentId) : undefined
  const edge = trigger.type === 'segment_enter' ? 'entered' : 'left'
  return {
    ...{ customerId: '00000000-0000-4000-8000-000000000000', now, accounts: new Map(), versions: 0n },
    ...{ revision: delivery.revision, rev: 0n, properties: {}, segments: delivery.named },
    members: new Map(named && edge === 'entered' ? [[named.versionId, now]] : []),
    edges: new Map(named ? [[named.segmentId, { edge, isEvent: true, at: now }]] : []),
    ...{ enrolments: new Map(), assignments: new Map(), pausedAt: null },
    journeys: journeysOf(trial, false),
  }
}

/** A member of everything that the trigger allows, with every property, assigned and converted. */
function somebody(trial: Trial): Person {
  const { delivery, releases, current } = trial
  const { trigger } = current
  const out = trigger.type === 'segment_leave' ? trigger.segmentId : null
  const members = [...delivery.segments].filter(([id]) => id !== out)
  const keys = releases.flatMap(({ facts }) => facts.propertyKeys)
  return {
    ...stranger(trial),
    properties: Object.fromEntries(keys.map((key) => [key, 'x'])),
    members: new Map(members.map(([, { versionId }]) => [versionId, now])),
    journeys: journeysOf(trial, true),
  }
}

/** One that stands before each leg. */
function journeysOf({ app, current, plan }: Trial, isFull: boolean): OpenJourney[] {
  const isByEntry = plan.policy.goal?.attribution.basis === 'entry'
  return Object.entries(plan.sections).map(([sectionKey, { inputs }], n) => {
    const id = `019b75d0-0000-7000-8000-${String(n).padStart(12, '0')}`
    const values = (fields: readonly DeclaredField[]) =>
      Object.fromEntries(fields.filter(({ required }) => isFull || required).map((one) => [one.key, sampleOf(one)]))
    const basis = { eventId: isByEntry ? id : 'shown', occurredAt: now }
    return {
      ...{ id, appId: app.appId, status: 'armed' },
      ...{ experienceRowId: current.experienceRowId, versionNumber: current.versionNumber, generation: n, sectionKey },
      held: false,
      context: { event: values(inputs.eventFields), responses: values(inputs.responseFields) },
      conversion: {
        ...{ startedAt: now, revision: 1 },
        ...(isFull || isByEntry ? { basis } : {}),
        ...(isFull ? { conversion: { eventId: 'met', occurredAt: now + 1 } } : {}),
      },
    }
  })
}

function sampleOf({ type, enum: words, options, min, max }: DeclaredField): Json {
  const [word = 'x'] = words ?? options ?? []
  switch (type) {
    case 'number':
      return min ?? max ?? 0
    case 'boolean':
      return true
    case 'null':
      return null
    case 'json':
      return {}
    case 'date':
      return '2026-01-01'
    case 'multi_enum':
      return [word]
    default:
      return word
  }
}

/** Everybody has the first variant that the legs list. */
function concluded({ releases }: Trial): Map<string, Experiment> {
  const listed = new Map(releases.flatMap(({ variants }) => [...variants]))
  return new Map(
    [...listed].map(([publicId, ids], id) => {
      const variants = [...ids].map((variant) => ({ id: variant, weight: 1 / ids.size, isHoldout: false }))
      return [
        publicId,
        {
          ...{ scopeId: 0, id, publicId, key: publicId, name: publicId, kind: 'ab', status: 'concluded', phase: 1 },
          ...{ seed: publicId, variants, coverage: 1, audienceSegmentId: null, namespace: null, metrics: [] },
          ...{
            winnerVariantId: variants[0]?.id ?? null,
            weightPeriods: [],
            startedAtMs: now,
            createdAt: new Date(now),
          },
        },
      ]
    }),
  )
}
