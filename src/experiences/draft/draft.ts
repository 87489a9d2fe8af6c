import { dayMs, draftLocalesMax, draftSectionsMax, draftStepsMax, journeyDaysMax } from '../../kernel/limits.ts'
import { type Action, actionsOf, type Plane } from './actions.ts'
import { eventField, responseField, responseKey } from './declared.ts'
import { type Findings, under } from './findings.ts'
import { formsShape, groupsShape, stateShape } from './forms.ts'
import { behaviorsShape, placementsShape, renderShape, screensShape, viewModelValuesShape } from './screens.ts'
import {
  anything,
  boolean,
  either,
  isObject,
  list,
  map,
  number,
  object,
  pattern,
  type Shape,
  type Shaped,
  tagged,
  text,
  that,
  whole,
  word,
} from './shape.ts'
import { duration, eventName, id, jid, stepId } from './values.ts'

const expression = anything // judged by checkIr, which knows the place
const target = either((one) => one === null, word(null), stepId)
const trimmed = pattern('text of 1 to 128 characters without outer white space', /^(?!\s).{1,128}(?<!\s)$/su)
const locale = pattern('a language tag', /^[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8}){0,8}$/)

const criterion = {
  event: object({ eventName: trimmed }, { condition: expression }),
  segment_enter: object({ segmentId: trimmed }),
  segment_leave: object({ segmentId: trimmed }),
}
const trigger = tagged('type', {
  ...criterion,
  api: object({}),
  server_event: object(
    { connectorKey: trimmed, triggerKey: trimmed },
    { identityField: trimmed, condition: expression },
  ),
})
const frequency = tagged('type', {
  one_time: object({}),
  every_match: object({}),
  once_per_window: object({ window: duration }),
})
const policy = object(
  {
    entry: object({ trigger, frequency }, { enrolment: word('auto', 'device', 'server'), eligibility: expression }),
    exitWhenAny: list(tagged('type', { goal_met: object({}), eligibility_lost: object({}), ...criterion }), {
      max: 20,
    }),
  },
  {
    goal: object({
      criterion: tagged('type', criterion),
      attribution: object({ basis: word('first_shown', 'entry'), window: duration }),
    }),
    holdout: id,
    lifetimeMs: whole(1, journeyDaysMax * dayMs),
  },
)

const entryCondition = tagged('type', {
  app_foregrounded: object({}, { condition: expression }),
  always: object({}, { condition: expression }),
  event: object({ eventName }, { condition: expression }),
  segment: object({ segmentId: id, member: boolean }, { condition: expression }),
})

const color = pattern('a colour, #RRGGBBAA', /^#[0-9A-Fa-f]{8}$/)
const framed = { orientation: word('portrait', 'landscape', 'any'), backgroundColor: color }
const presentation = tagged('style', {
  full_screen: object(framed),
  sheet: object({ ...framed, detent: word('medium', 'large'), dismissible: boolean }),
  drawer: object({
    ...framed,
    edge: word('bottom', 'top', 'leading', 'trailing'),
    extentRatio: number(0.01, 1),
    cornerRadius: number(0, 128),
    dismissible: boolean,
  }),
})

const host = tagged('kind', { journey: object({}), screen: object({ screenId: id }) })

const step = object({
  id: stepId,
  plane: word('device', 'server'),
  action: anything as Shape<Action>, // told apart by plane, in `checkShape`
  outlets: map(target, { key: stepId, max: 65 }),
})

const draftShape = object(
  {
    draftVersion: word(1),
    platforms: list(word('ios', 'android', 'web'), { min: 1, max: 3 }),
    locales: object({ default: locale }, { others: list(locale, { max: draftLocalesMax - 1 }) }),
    metadata: object(
      { name: text(), appDefaultTimezone: that<string>('an IANA time zone', isTimeZone) },
      { experienceType: text({ max: 64 }), description: text({ min: 0, max: 2048 }) },
    ),
    policy,
    graph: object(
      { entry: stepId, steps: list(step, { min: 1, max: draftStepsMax }) },
      {
        routes: list(object({ host, eventName: id, to: stepId }), { max: draftStepsMax }),
        sections: map(
          object(
            {},
            {
              entry: entryCondition,
              armForMs: whole(1, journeyDaysMax * dayMs),
              outcomes: map(target, { key: stepId, max: 65 }),
            },
          ),
          { key: stepId, max: draftSectionsMax },
        ),
      },
    ),
    presentation,
  },
  {
    priority: whole(-1_000_000, 1_000_000),
    fields: object(
      {},
      {
        event: map(eventField, { key: jid, max: 256 }),
        responses: map(responseField, { key: responseKey, max: 256 }),
      },
    ),
    screens: screensShape,
    placements: placementsShape,
    render: renderShape,
    viewModelValues: viewModelValuesShape,
    screenBehaviors: behaviorsShape,
    state: stateShape,
    responseForms: formsShape,
    ruleGroups: groupsShape,
  },
)

/** An authored Experience, as far as its shape goes. */
export type Draft = Shaped<typeof draftShape>
export type DraftStep = Shaped<typeof step>

/** Whether every key and value has its place and kind. What they say together is judged after that. */
export function checkShape(value: unknown, findings: Findings): value is Draft {
  draftShape(value, '', findings)
  const steps = isObject(value) && isObject(value.graph) && Array.isArray(value.graph.steps) ? value.graph.steps : []
  for (const [i, one] of steps.slice(0, draftStepsMax).entries()) {
    if (isObject(one) && (one.plane === 'device' || one.plane === 'server')) {
      checkAction(one.action, one.plane, under('/graph/steps', i, 'action'), findings)
    }
  }
  return findings.issues.length === 0
}

function checkAction(action: unknown, plane: Plane, path: string, findings: Findings): void {
  const type = isObject(action) && typeof action.type === 'string' ? action.type : ''
  const shape = Object.hasOwn(actionsOf[plane], type) ? actionsOf[plane][type] : undefined
  if (isObject(action) && shape) {
    const { type: _, ...rest } = action
    shape(rest, path, findings)
    return
  }
  const other = plane === 'device' ? 'server' : 'device'
  if (Object.hasOwn(actionsOf[other], type)) {
    const replacement = Object.hasOwn(twins, type) ? twins[type] : undefined
    const advice = replacement === undefined ? '' : `use "${replacement}" here or `
    findings.add(path, 'action_wrong_plane', `"${type}" runs on the ${other} plane; ${advice}set plane to ${other}.`)
    return
  }
  const allowed = Object.keys(actionsOf[plane]).join(', ')
  findings.add(path, 'action_unknown', `"${type}" is not a ${plane} action. Allowed: ${allowed}.`)
}

const twins: Record<string, string> = {
  condition: 'branch',
  branch: 'condition',
  experiment: 'experiment_split',
  experiment_split: 'experiment',
  wait_until: 'wait_for_event',
  wait_for_event: 'wait_until',
  send_event: 'emit_event',
  emit_event: 'send_event',
  update_customer: 'set_properties',
  set_properties: 'update_customer',
}

function isTimeZone(name: unknown): boolean {
  try {
    return typeof name === 'string' && name.length <= 128 && Boolean(new Intl.DateTimeFormat('en', { timeZone: name }))
  } catch {
    return false
  }
}
