import { draftSectionsMax } from '../../kernel/limits.ts'
import { checkKept } from '../ir/check-kept.ts'
import { checkIr } from '../ir/grammar.ts'
import { isWaiting, outletsOf } from './actions.ts'
import { checkShape, type Draft, type DraftStep } from './draft.ts'
import { checkEventName } from './event-names.ts'
import { checkFieldTypes } from './field-types.ts'
import { fieldFlow, formReads } from './fields.ts'
import { Findings, under } from './findings.ts'
import { type Graph, graphOf, reasonOf, type Target, untimedLoops } from './graph.ts'
import { checkPolicy } from './policy.ts'
import { checkReferences, type References } from './references.ts'
import { checkRoutes } from './routes.ts'
import { checkValues } from './safe-values.ts'
import { checkShowing } from './showing.ts'
import { untrustedGrants } from './trust.ts'

/** What validation says: a draft that may be frozen, or all that is wrong with it. */
export type Judgement = { findings: Findings } & ({ draft: Draft; graph: Graph } | { draft: null; graph: null })

/** Outcomes that a device reports by itself. */
const builtInOutcomes = ['completed', 'abandoned', 'expired', 'holdout', 'host_dismissed', 'products_unavailable']

/** Judges a draft whole. First its shape; what its parts say together only when that is right. */
export function validateDraft(value: unknown, known: References): Judgement {
  const findings = new Findings()
  checkValues(value, '', findings)
  if (!checkShape(value, findings)) return { findings, draft: null, graph: null }
  const graph = graphOf(value)
  checkSteps(value, findings)
  checkTargets(value, graph, findings)
  checkRoutes(value, findings)
  checkEntries(value, known.deliverAlways ?? false, findings)
  checkExpressions(value, findings)
  checkPolicy(value, findings)
  checkReferences(value, known, findings)
  checkShowing(value, graph, known.content, findings)
  checkFields(value, graph, findings)
  checkFieldTypes(value, findings)
  checkLoops(value, graph, findings)
  return findings.issues.length === 0 ? { findings, draft: value, graph } : { findings, draft: null, graph: null }
}

function checkSteps({ graph }: Draft, findings: Findings): void {
  const seen = new Map<string, string>()
  for (const [i, step] of graph.steps.entries()) {
    const path = under('/graph/steps', i)
    const first = seen.get(step.id)
    if (first !== undefined) {
      findings.add(under(path, 'id'), 'id_duplicate', `Step id "${step.id}" is used twice; first at ${first}.`)
    }
    seen.set(step.id, first ?? path)
    if (!/^[A-Za-z0-9_.-]{1,128}$/.test(step.id) || builtInOutcomes.includes(step.id)) {
      const reserved = builtInOutcomes.join(', ')
      findings.add(
        under(path, 'id'),
        'id_invalid',
        `"${step.id}" must be 1 to 128 characters of A-Z a-z 0-9 _ . - and not a reserved outcome (${reserved}).`,
      )
    }
    checkOutlets(step, path, findings)
    checkAction(step, under(path, 'action'), findings)
  }
  for (const [i, step] of graph.steps.entries()) {
    if (step.plane !== 'device' || step.action.type !== 'exit') continue
    const reason = reasonOf(step)
    const first = seen.get(reason)
    const path = under('/graph/steps', i, 'action', 'reason')
    if (first !== undefined) {
      findings.add(path, 'id_duplicate', `Outcome id "${reason}" is used twice; first at ${first}.`)
    }
  }
}

function checkOutlets(step: DraftStep, path: string, findings: Findings): void {
  const { id, action, outlets } = step
  const asked = outletsOf(step)
  for (const outlet of asked) {
    if (Object.hasOwn(outlets, outlet)) continue
    const consequence = step.plane === 'device' ? '; a device would end the leg as abandoned' : ''
    const message = `Step "${id}" (${action.type}) has no target for outlet "${outlet}"${consequence}.`
    findings.add(under(path, 'outlets'), 'outlet_missing', message)
  }
  for (const outlet of Object.keys(outlets)) {
    if (asked.includes(outlet)) continue
    const message = `Step "${id}" (${action.type}) has no outlet "${outlet}". Outlets: ${asked.join(', ') || 'none'}.`
    findings.add(under(path, 'outlets', outlet), 'outlet_unknown', message)
  }
}

function checkAction({ plane, action }: DraftStep, path: string, findings: Findings): void {
  const { type, eventName } = action
  if ((type === 'send_event' || type === 'emit_event') && String(eventName).startsWith('$')) {
    findings.add(
      path,
      'event_reserved',
      `"${String(eventName)}" starts with $: send_event and emit_event may not use it.`,
    )
  }
  if (type === 'wait_for_event') checkEventName(String(eventName), under(path, 'eventName'), findings)
  const oneOf = (keys: string[], least: number, most: number) => {
    const given = keys.filter((key) => action[key] !== undefined).length
    if (given < least || given > most) findings.add(path, 'value_invalid', `"${type}" takes one of ${keys.join(', ')}.`)
  }
  if (type === 'grant_feature') oneOf(['amount', 'unlimited'], 0, 1)
  if (type === 'delay' && plane === 'server') oneOf(['durationMs', 'until', 'window'], 1, 1)
  for (const key of ['branches', 'variants']) {
    if (!Array.isArray(action[key])) continue
    const ids = (action[key] as { id: string }[]).map((one) => one.id) // its shape was found right
    const twice = ids.find((one, i) => ids.indexOf(one) !== i)
    if (twice === undefined) continue
    const first = under(path, key, ids.indexOf(twice))
    findings.add(path, 'id_duplicate', `${key} id "${twice}" is used twice; first at ${first}.`)
  }
  const isVariant = (one: { id: string }) => one.id === action.fallbackVariantId
  if (Array.isArray(action.variants) && !(action.variants as { id: string }[]).some(isVariant)) {
    findings.add(path, 'value_invalid', 'fallbackVariantId must be one of the variants.')
  }
}

function checkTargets({ graph: authored, screens }: Draft, graph: Graph, findings: Findings): void {
  const look = (from: string, target: Target | undefined, path: string) => {
    if (typeof target !== 'string' || graph.steps.has(target)) return
    findings.add(path, 'target_missing', `${from} points to step "${target}", which does not exist.`)
  }
  look('The entry', authored.entry, '/graph/entry')
  for (const [i, { id, outlets }] of authored.steps.entries()) {
    for (const [outlet, target] of Object.entries(outlets)) {
      look(`Outlet "${outlet}" of step "${id}"`, target, under('/graph/steps', i, 'outlets', outlet))
    }
  }
  for (const [i, { eventName, to }] of (authored.routes ?? []).entries()) {
    look(`The route of "${eventName}"`, to, under('/graph/routes', i, 'to'))
  }
  for (const [i, { id, offer }] of (screens ?? []).entries()) {
    for (const key of ['onAlreadyEntitled', 'onAccessUnknown'] as const) {
      look(`${key} of screen "${id}"`, offer?.[key], under('/screens', i, 'offer', key))
    }
  }
  for (const [key, { outcomes = {} }] of Object.entries(authored.sections ?? {})) {
    const path = under('/graph/sections', key)
    if (!graph.sections.has(key))
      findings.add(path, 'target_missing', `Section "${key}" begins at no step that is the entry of one.`)
    for (const [outcome, target] of Object.entries(outcomes)) {
      look(`Outcome "${outcome}" of section "${key}"`, target, under(path, 'outcomes', outcome))
      const known = [...builtInOutcomes.slice(1), ...(graph.sections.get(key)?.reasons ?? [])]
      if (!known.includes(outcome)) {
        const message = `Section "${key}" has no outcome "${outcome}". Outcomes: ${known.join(', ')}.`
        findings.add(under(path, 'outcomes', outcome), 'outlet_unknown', message)
      }
    }
  }
  for (const { id } of graph.unreachable) {
    const i = authored.steps.findIndex((step) => step.id === id)
    const message = `Step "${id}" cannot be reached from the entry, a route or a section outcome.`
    findings.add(under('/graph/steps', i), 'step_unreachable', message)
  }
  if (graph.sections.size > draftSectionsMax) {
    findings.add('/graph', 'limit_exceeded', `${graph.sections.size} sections; at most ${draftSectionsMax}.`)
  }
}

function checkEntries({ graph }: Draft, deliverAlways: boolean, findings: Findings): void {
  for (const [key, { entry }] of Object.entries(graph.sections ?? {})) {
    if (entry?.type !== 'always' || deliverAlways) continue
    const message =
      '"always" is compiled to app_foregrounded; existing mobile clients refuse "always". The project setting deliver_always sends it as written.'
    findings.add(under('/graph/sections', key, 'entry'), 'W_always', message)
  }
}

function checkExpressions({ graph }: Draft, findings: Findings): void {
  for (const [key, { entry }] of Object.entries(graph.sections ?? {})) {
    const path = under('/graph/sections', key, 'entry/condition')
    if (entry?.condition !== undefined) checkIr(entry.condition, path, findings, 'device')
  }
  for (const [i, { plane, action }] of graph.steps.entries()) {
    const path = under('/graph/steps', i, 'action')
    if (plane !== 'server') continue
    if (action.condition !== undefined) checkIr(action.condition, under(path, 'condition'), findings, 'server')
    if (action.type !== 'branch') continue
    const branches = action.branches as { condition: unknown }[] // its shape was found right
    for (const [n, { condition }] of branches.entries()) {
      checkKept(condition, under(path, 'branches', n, 'condition'), findings)
    }
  }
}

function checkFields(draft: Draft, graph: Graph, findings: Findings): void {
  const declared = new Map<string, boolean>(
    Object.entries(draft.fields ?? {}).flatMap(([kind, fields]) =>
      Object.entries(fields ?? {}).map(([key, { required }]) => [`${kind}.${key}`, required] as const),
    ),
  )
  const { reads, inputs, sure } = fieldFlow(draft, graph)
  for (const { step, field } of reads) {
    if (declared.has(field)) continue
    const path = under('/graph/steps', draft.graph.steps.indexOf(step), 'action')
    findings.add(path, 'field_undeclared', `"${step.id}" reads field "${field}", which is not declared.`)
  }
  for (const { step, form, key } of formReads(draft)) {
    const known = Object.hasOwn(draft.responseForms ?? {}, form) ? draft.responseForms?.[form] : undefined
    if (known?.fields.some((one) => one.key === key)) continue
    const path = under('/graph/steps', draft.graph.steps.indexOf(step), 'action')
    const message = `"${step.id}" reads field "${form}.${key}", which is not declared.`
    findings.add(path, 'field_undeclared', message)
  }
  for (const [key, fields] of inputs) {
    for (const [field, must] of fields) {
      if (!must || declared.get(field) !== true || sure.get(key)?.has(field) === true) continue
      const message = `Section "${key}" requires "${field}", and a path reaches it without producing it; the device would refuse the leg silently.`
      findings.add(under('/graph/sections', key), 'field_unsatisfied', message)
    }
  }
}

function checkLoops(draft: Draft, graph: Graph, findings: Findings): void {
  for (const loop of untimedLoops(graph.steps, isWaiting)) {
    const message = `Steps ${loop.join(', ')} form a loop in which nothing waits (no delay, wait_for_event, wait_until, time_window, screen, purchase or restore).`
    findings.add('/graph/steps', 'cycle_untimed', message)
  }
  for (const { step, via } of untrustedGrants(draft, graph)) {
    const message = `grant_feature "${step.id}" can be reached through ${via}, which a client can forge. Put a server-trusted gate after it.`
    findings.add(under('/graph/steps', draft.graph.steps.indexOf(step)), 'grant_untrusted', message)
  }
  for (const [i, step] of draft.graph.steps.entries()) {
    if (step.action.type !== 'grant_feature' || !leadsTo(graph, step.id)) continue
    findings.add(under('/graph/steps', i), 'W_grant_loop', `"${step.id}" sits in a loop; each pass grants again.`)
  }
}

function leadsTo(graph: Graph, id: string): boolean {
  const seen = new Set<Target>()
  const waiting: Target[] = Object.values(graph.steps.get(id)?.outlets ?? {})
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    if (next === id) return true
    if (next === null || seen.has(next)) continue
    seen.add(next)
    const section = graph.sections.get(next)
    waiting.push(
      ...(section
        ? [...section.exits, ...Object.values(section.outcomes)]
        : Object.values(graph.steps.get(next)?.outlets ?? {})),
    )
  }
  return false
}
