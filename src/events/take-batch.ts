import { must, unreachable } from '../kernel/assert.ts'
import type { AppendResult, EventLog } from './append.ts'
import { type BatchReply, batchReply, eventNameOf, type ItemOutcome } from './batch-reply.ts'
import { type Normalised, normalise, type Receipt } from './normalise.ts'
import { reason } from './reasons.ts'
import type { NewEvent, Origin, Stream } from './types.ts'

/**
 * Judges every item of a batch by itself, stores the good ones in one transaction and answers for all. Throws 503 when
 * that transaction could not commit; then nothing of the batch is stored.
 */
export async function takeBatch(
  appendBatch: EventLog['appendBatch'],
  origin: Origin,
  items: readonly unknown[],
  { stream, ...receipt }: Receipt & { stream: Stream },
): Promise<BatchReply> {
  const judged = items.map((item) => normalise(item, receipt))
  const events = judged.flatMap((each): NewEvent[] => (each.kind === 'event' ? [each.event] : []))
  const results = (await appendBatch(origin, events, { stream })).values()
  return batchReply(judged.map((each, i) => outcomeOf(each, items[i], results)))
}

/** Takes the next result when the item was one of those that were to be stored. */
function outcomeOf(judged: Normalised, item: unknown, results: Iterator<AppendResult, undefined>): ItemOutcome {
  switch (judged.kind) {
    case 'event': {
      const result = must(results.next().value, 'every event has a result')
      if (result === 'accepted') return { kind: 'accepted', uuid: judged.event.uuid }
      return { kind: 'deleted', event: judged.event.known.event, error: reason('customer_deleted') }
    }
    case 'invalid':
      return { kind: 'invalid', event: eventNameOf(item), error: judged.issues[0].message }
    case 'misdirected': {
      const { issue, lane, endpoint } = judged
      return { kind: 'misdirected', event: eventNameOf(item), error: issue.message, lane, endpoint }
    }
    default:
      return unreachable(judged)
  }
}
