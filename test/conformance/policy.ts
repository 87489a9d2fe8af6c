import {
  type At,
  also,
  exact,
  fields,
  hold,
  integer,
  into,
  is,
  list,
  type Of,
  pid,
  type Tagged,
  tagged,
} from './check.ts'
import { condition, goalCondition, isNameableEvent } from './expressions.ts'

const nameable = also(pid, (eventName, at) =>
  hold(at, isNameableEvent(eventName), 'names an event that content may name'),
)

const criteria = (checked: typeof condition) => ({
  event: fields({ eventName: nameable }, { condition: checked }),
  segment_enter: fields({ segmentId: pid }),
  segment_leave: fields({ segmentId: pid }),
})

const trigger = tagged('type', {
  ...criteria(condition),
  api: fields(),
  server_event: fields({ connectorKey: pid, triggerKey: pid }, { identityField: pid, condition }),
})

const unitMs = { minute: 60_000, hour: 3_600_000, day: 86_400_000, week: 604_800_000 }
const duration = exact({ amount: integer(1), unit: is('minute', 'hour', 'day', 'week') })
const attributionMsMax = 90 * unitMs.day
const window = also(duration, (sent, at) => hold(at, durationMs(sent) <= attributionMsMax, 'is at most 90 days'))

export function durationMs({ amount, unit }: Of<typeof duration>): number {
  return amount * unitMs[unit]
}

const frequency = tagged('type', {
  one_time: fields(),
  every_match: fields(),
  once_per_window: fields({ window: duration }),
})

const goal = exact({
  criterion: tagged('type', criteria(goalCondition)),
  attribution: exact({ basis: is('first_shown', 'entry'), window }),
})

const exit = tagged('type', { goal_met: fields(), eligibility_lost: fields(), ...criteria(condition) })

/** When a customer enters, how often, what the aim is, and what ends it. The same in all legs of a version. */
export const policy = also(
  exact({ entry: exact({ trigger, frequency }, { eligibility: condition }), exitWhenAny: list(exit) }, { goal }),
  ({ entry, exitWhenAny, goal: aim }, at) => {
    const hasExit = (type: Tagged<'type', string>['type']) => exitWhenAny.some((each) => each.type === type)
    needs(into(at, 'exitWhenAny'), hasExit('goal_met'), aim, 'has goal_met only with a goal')
    needs(
      into(at, 'exitWhenAny'),
      hasExit('eligibility_lost'),
      entry.eligibility,
      'has eligibility_lost only with eligibility',
    )
  },
)

function needs(at: At, listed: boolean, what: unknown, rule: string): void {
  hold(at, !listed || what !== undefined, rule)
}
