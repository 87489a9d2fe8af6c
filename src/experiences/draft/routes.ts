import { isPresenting } from './actions.ts'
import type { Draft } from './draft.ts'
import { type Findings, under } from './findings.ts'

/** Events of a screen's offer that lead where the offer says. */
export const offerEvents = {
  alreadyEntitled: '$offer_already_entitled',
  accessUnknown: '$offer_access_unknown',
} as const

/** Each event of a host leads to one step, and what is left of a host that has gone shows nothing. */
export function checkRoutes({ graph, screens = [] }: Draft, findings: Findings): void {
  const offered = screens.flatMap(({ id, offer }) =>
    offer ? Object.values(offerEvents).map((name) => keyOf(id, name)) : [],
  )
  const handled = new Set(offered)
  for (const [i, { host, eventName, to }] of (graph.routes ?? []).entries()) {
    const path = under('/graph/routes', i)
    const on = host.kind === 'screen' ? host.screenId : null
    if (on !== null && !screens.some(({ id }) => id === on)) {
      const message = `The route of "${eventName}" points to screen "${on}", which does not exist.`
      findings.add(under(path, 'host'), 'target_missing', message)
    }
    if (handled.has(keyOf(on, eventName))) {
      const name = on === null ? 'journey' : `screen "${on}"`
      findings.add(path, 'route_duplicate', `Host ${name} handles "${eventName}" twice.`)
    }
    handled.add(keyOf(on, eventName))
    const step = eventName === 'host_dismissed' ? graph.steps.find(({ id }) => id === to) : undefined
    if (step?.plane === 'device' && isPresenting(step.action.type)) {
      findings.add(path, 'route_dismiss', `host_dismissed may not lead to the presenting step "${step.id}".`)
    }
  }
}

function keyOf(screenId: string | null, eventName: string): string {
  return JSON.stringify([screenId, eventName])
}
