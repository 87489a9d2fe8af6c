import type { Draft, DraftStep } from './draft.ts'
import type { Screen } from './screens.ts'

/** A step id, or null: the journey ends there. */
export type Target = string | null

/** What a device runs alone: all that is reachable from one device step without passing the server. */
export interface Section {
  /** The entry step's id names the section. */
  key: string
  /** Device steps, in the order of the draft. */
  steps: DraftStep[]
  /** Where it may go on: server steps, and null if a path ends the journey. */
  exits: Set<Target>
  /** Screens that a step of it shows, in the order of the draft. */
  screens: Screen[]
  /** Reasons with which a step ends the journey. */
  reasons: Set<string>
  /** Authored for outcomes that no step leads to, such as `abandoned`. */
  outcomes: Record<string, Target>
}

export interface Graph {
  steps: Map<string, DraftStep>
  sections: Map<string, Section>
  /** Server steps that something leads to. */
  serverSteps: Map<string, DraftStep>
  /** Device steps that hold in no section, and server steps nothing leads to. */
  unreachable: DraftStep[]
}

/** Cuts the authored graph into sections. Targets that do not exist lead nowhere. */
export function graphOf({ graph, screens = [] }: Draft): Graph {
  const steps = new Map(graph.steps.map((step) => [step.id, step]))
  const sections = new Map<string, Section>()
  const serverSteps = new Map<string, DraftStep>()
  const waiting: Target[] = [graph.entry]
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const step = next === null ? undefined : steps.get(next)
    if (!step || sections.has(step.id) || serverSteps.has(step.id)) continue
    if (step.plane === 'server') {
      serverSteps.set(step.id, step)
      waiting.push(...Object.values(step.outlets))
    } else {
      const section = cut({ graph, screens, steps }, step.id)
      sections.set(step.id, section)
      waiting.push(...section.exits, ...Object.values(section.outcomes))
    }
  }
  const inSections = new Set([...sections.values()].flatMap((section) => section.steps.map(({ id }) => id)))
  const unreachable = graph.steps.filter(({ id }) => !inSections.has(id) && !serverSteps.has(id))
  return { steps, sections, serverSteps, unreachable }
}

interface Uncut {
  graph: Draft['graph']
  screens: Screen[]
  steps: Map<string, DraftStep>
}

/** Outlets lead on, routes of the journey always, and those of a screen once a step shows it. */
function cut({ graph, screens, steps }: Uncut, key: string): Section {
  const { routes = [], sections = {} } = graph
  const found = new Set<string>()
  const exits = new Set<Target>()
  const reasons = new Set<string>()
  const shown = new Set<Screen>()
  const waiting: Target[] = [key, ...routes.filter(({ host }) => host.kind === 'journey').map(({ to }) => to)]
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const step = next === null ? undefined : steps.get(next)
    if (next === null || step?.plane === 'server') exits.add(next)
    if (step?.plane !== 'device' || found.has(step.id)) continue
    found.add(step.id)
    waiting.push(...Object.values(step.outlets))
    if (step.action.type === 'exit') reasons.add(reasonOf(step))
    const screen = step.action.type === 'navigate' && screens.find(({ id }) => id === step.action.screenId)
    if (!screen || shown.has(screen)) continue
    shown.add(screen)
    waiting.push(...routes.filter(({ host }) => isOn(host, screen)).map(({ to }) => to))
    if (screen.offer) waiting.push(screen.offer.onAlreadyEntitled, screen.offer.onAccessUnknown)
  }
  const outcomes = Object.hasOwn(sections, key) ? (sections[key]?.outcomes ?? {}) : {}
  return {
    key,
    steps: graph.steps.filter(({ id }) => found.has(id)),
    exits,
    screens: screens.filter((screen) => shown.has(screen)),
    reasons,
    outcomes,
  }
}

type Host = NonNullable<Draft['graph']['routes']>[number]['host']

export function isOn(host: Host, { id }: { id: string }): boolean {
  return host.kind === 'screen' && host.screenId === id
}

/** The outcome that an exit reports. */
export function reasonOf({ action }: DraftStep): string {
  return typeof action.reason === 'string' ? action.reason : 'completed'
}

/** One loop of each group of steps in which nothing waits. */
export function untimedLoops(steps: Map<string, DraftStep>, isWaiting: (step: DraftStep) => boolean): string[][] {
  const onward = new Map(
    [...steps.values()]
      .filter((step) => !isWaiting(step))
      .map((step) => [step.id, Object.values(step.outlets).filter((to): to is string => to !== null)]),
  )
  shed(onward)
  const loops: string[][] = []
  for (const start of onward.keys()) {
    const path: string[] = []
    for (let at: string | undefined = start; at !== undefined && onward.has(at); ) {
      if (path.includes(at)) {
        loops.push(path.slice(path.indexOf(at)))
        for (const id of path) onward.delete(id)
        shed(onward)
        break
      }
      path.push(at)
      at = onward.get(at)?.find((to) => onward.has(to))
    }
  }
  return loops
}

/** Takes away what leads to nothing that is left, again and again: what stays is on a loop, or leads to one. */
function shed(onward: Map<string, string[]>): void {
  for (let before = -1; before !== onward.size; ) {
    before = onward.size
    for (const [id, targets] of onward) if (!targets.some((to) => onward.has(to))) onward.delete(id)
  }
}
