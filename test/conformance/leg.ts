import { isDeepStrictEqual } from 'node:util'
import { action, namedPlacement, presents } from './actions.ts'
import {
  type At,
  also,
  areDistinct,
  asc,
  digest,
  distinct,
  exact,
  fields,
  flag,
  hold,
  id,
  into,
  list,
  type Of,
  record,
  tagged,
  utf8,
  word,
} from './check.ts'
import { declared, responseFields } from './context.ts'
import { legCondition, nodesOf } from './expressions.ts'
import { policy } from './policy.ts'

const entries = tagged('type', {
  app_foregrounded: fields({}, { condition: legCondition }),
  event: fields({ eventName: id() }, { condition: legCondition }),
  segment: fields({ segmentId: id(), member: flag }, { condition: legCondition }),
  always: fields({}, { condition: legCondition }),
})

/** When a client starts a leg. Those in the field refuse a whole profile for `always`. */
export const entryCondition = also(entries, ({ type }, at) =>
  hold(at, type !== 'always' || at.mode === 'spec', 'is not always, which clients refuse'),
)

const step = tagged('kind', {
  complete: fields({ id: id(), outcome: id() }),
  action: fields({ id: id(), action, outlets: record(id(), id()) }),
})
const actionStep = exact({ kind: word(() => 'action'), id: id(), action, outlets: record(id(), id()) })
type ActionStep = Of<typeof actionStep>

const host = tagged('kind', { journey: fields(), screen: fields({ screenId: id() }) })
const route = exact({ host, eventName: id(), entryStepId: id() })

const screen = exact(
  { id: id(), responseCaptures: asc(utf8(128), { max: 256 }) },
  { defaultViewModelName: id(), defaultInstanceId: id() },
)

const offer = exact({
  screenId: id(),
  placementIds: distinct(list(id(), { min: 1 }), (each) => each, 'placement'),
  alreadyEntitledStepId: id(),
  unknownStepId: id(),
})

const shape = exact({
  schemaVersion: word((namespace) => `${namespace}.experience-planes.v1`),
  id: digest,
  entryCondition,
  entryStepId: id(),
  steps: distinct(list(step, { min: 1, max: 10_000 }), (each) => String(each.id), 'step id'),
  routes: list(route),
  screens: distinct(list(screen), (each) => each.id, 'screen id'),
  policy,
  offers: distinct(list(offer), (each) => each.screenId, 'screen'),
  facts: exact({ propertyKeys: asc(id()), segmentIds: asc(id()), experimentIds: asc(id()) }),
  inputs: declared,
  outputs: responseFields,
  completionOutputs: record(id(), declared),
})
export type Leg = Of<typeof shape>
type Route = Leg['routes'][number]

/** A section of an Experience as it runs on a device, every name in it leading somewhere. */
export const leg = also(shape, (whole, at) => {
  checkSteps(whole, at)
  checkRoutes(whole, into(at, 'routes'))
  checkOffers(whole, into(at, 'offers'))
  hold(
    into(at, 'facts'),
    isDeepStrictEqual({ ...whole.facts }, readFacts(whole)),
    'is what the entry condition and the steps read',
  )
})

export function actionsOf({ steps }: Leg): ActionStep['action'][] {
  return actionStepsOf(steps).map((each) => each.action)
}

/** Shown to be of this shape by `step`. */
function actionStepsOf(steps: Leg['steps']): ActionStep[] {
  const unheard: At = { path: '$', found: [], namespace: '', mode: 'spec' }
  return steps.filter((each) => actionStep(each, unheard))
}

function checkSteps({ steps, screens, entryStepId }: Leg, at: At): void {
  const known = new Set(steps.map((each) => String(each.id)))
  const shown = new Set(screens.map((each) => each.id))
  hold(into(at, 'entryStepId'), known.has(entryStepId), 'is a step')
  steps.forEach((each, index) => {
    if (each.kind !== 'action') return
    const here = into(into(at, 'steps'), index)
    for (const [outlet, target] of Object.entries(each.outlets as ActionStep['outlets'])) {
      hold(into(into(here, 'outlets'), outlet), known.has(target), 'is a step')
    }
    const { type, screenId } = each.action as ActionStep['action']
    if (type === 'navigate')
      hold(into(into(here, 'action'), 'screenId'), shown.has(String(screenId)), 'is a screen of the leg')
  })
}

function checkRoutes({ routes, steps, screens }: Leg, at: At): void {
  const known = new Set(steps.map((each) => String(each.id)))
  const shown = new Set(screens.map((each) => each.id))
  hold(
    at,
    areDistinct(routes.map(({ host: on, eventName }) => JSON.stringify([screenOf(on), eventName]))),
    'has each host and event once',
  )
  routes.forEach(({ host: on, eventName, entryStepId }, index) => {
    const here = into(at, index)
    hold(into(here, 'entryStepId'), known.has(entryStepId), 'is a step')
    if (on.kind === 'screen') hold(into(here, 'host'), shown.has(String(on.screenId)), 'is a screen of the leg')
    if (eventName !== 'host_dismissed') return
    const target = actionStepsOf(steps).find((each) => each.id === entryStepId)
    hold(here, target === undefined || !presents(target.action), 'enters no action that presents once the host is gone')
  })
}

function screenOf(on: Route['host']): string | null {
  return on.kind === 'screen' ? String(on.screenId) : null
}

function checkOffers({ offers, routes, screens }: Leg, at: At): void {
  const shown = new Set(screens.map((each) => each.id))
  offers.forEach(({ screenId, alreadyEntitledStepId, unknownStepId }, index) => {
    const here = into(at, index)
    const enters = (eventName: string, stepId: string) =>
      routes.some(
        (each) => screenOf(each.host) === screenId && each.eventName === eventName && each.entryStepId === stepId,
      )
    hold(into(here, 'screenId'), shown.has(screenId), 'is a screen of the leg')
    const entitled = enters('$offer_already_entitled', alreadyEntitledStepId)
    hold(
      into(here, 'alreadyEntitledStepId'),
      entitled,
      'is entered by a route of the screen on $offer_already_entitled',
    )
    const unknown = enters('$offer_access_unknown', unknownStepId)
    hold(into(here, 'unknownStepId'), unknown, 'is entered by a route of the screen on $offer_access_unknown')
  })
}

function readFacts({ entryCondition: entry, steps }: Leg): Leg['facts'] {
  const nodes = nodesOf([entry, steps])
  const read = (types: string[], key: string) => {
    const found = nodes.filter(({ type }) => types.includes(String(type))).map((node) => String(node[key]))
    return [...new Set(found)].toSorted()
  }
  return {
    propertyKeys: read(['User', 'Customer.Field'], 'key'),
    segmentIds: [...new Set([...read(['Segment'], 'id'), ...read(['segment'], 'segmentId')])].toSorted(),
    experimentIds: read(['experiment'], 'experimentId'),
  }
}

/** Every placement that the leg names. */
export function placementsOf(whole: Leg): { at: string; id: string }[] {
  const bought = whole.steps.flatMap((each, index) => {
    const named = each.kind === 'action' ? namedPlacement(each.action as ActionStep['action']) : undefined
    return named === undefined ? [] : [{ at: `steps[${index}].action.placementId`, id: named }]
  })
  const offered = whole.offers.flatMap(({ placementIds }, index) =>
    placementIds.map((each, inner) => ({ at: `offers[${index}].placementIds[${inner}]`, id: each })),
  )
  return [...bought, ...offered]
}
