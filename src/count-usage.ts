import type { EventLog } from './events/index.ts'
import type { UsageTally } from './tenancy/index.ts'

type Appends = Pick<EventLog, 'append' | 'appendBatch'>

/** The same appends, which count what they have accepted. */
export function countEvents(usage: UsageTally, { append, appendBatch }: Appends): Appends {
  return {
    async append(origin, event) {
      const result = await append(origin, event)
      if (result === 'accepted') usage.add(origin.scopeId, 'events')
      return result
    },
    async appendBatch(origin, events, to) {
      const results = await appendBatch(origin, events, to)
      usage.add(origin.scopeId, 'events', results.filter((result) => result === 'accepted').length)
      return results
    },
  }
}

/** The same verb, which counts every decision it gives. */
export function countDecisions<Question extends { scope: { scopeId: number } }, Decision>(
  usage: UsageTally,
  decide: (question: Question) => Promise<Decision>,
): (question: Question) => Promise<Decision> {
  return async (question) => {
    const decision = await decide(question)
    usage.add(question.scope.scopeId, 'decisions')
    return decision
  }
}
