import { isDeepStrictEqual } from 'node:util'
import { unreachable } from '../src/kernel/assert.ts'
import type { Effect, Item } from './items.ts'
import { Model } from './model.ts'
import type { Answer } from './record.ts'
import type { Spend, Turn } from './turns.ts'

/** An event that was sent, whatever came of it. */
export interface SentEvent {
  distinctId: string
  effect: Effect
  acknowledged: boolean
}

/** An operation and the decision its callers got. */
export interface Operation {
  spend: Spend
  answer: Record<string, unknown>
}

/** What the answers promised, folded from the record. */
export class Expectation {
  /** By uuid. */
  readonly events = new Map<string, SentEvent>()
  readonly operations = new Map<string, Operation>()
  readonly stories = new Map<string, Model>()
  /** Units given, by distinct id. */
  readonly granted = new Map<string, number>()
  readonly deleted = new Set<string>()
  acknowledged = 0
  /** Items of batches that were neither accepted nor listed with their reason. */
  unlisted = 0
  /** Answers that should not have been, in words. */
  readonly faults: string[] = []

  /** `answer` is null where none was final. Turns of one client come in their order. */
  take(turn: Turn, answer: Answer | null): void {
    for (const item of itemsOf(turn)) this.#sent(item)
    this.faults.push(...(answer === null ? unanswered(turn) : this.#answered(turn, answer)))
  }

  /** Gives what is wrong with an answer, in words. */
  #answered(turn: Turn, answer: Answer): string[] {
    switch (turn.kind) {
      case 'event':
        return this.#event(turn.item, answer)
      case 'batch':
        return this.#batch(turn.items, answer)
      case 'spend':
        return this.#spend(turn, answer)
      case 'grant':
        if (answer.status !== 201) return [`a grant got ${shown(answer)}`]
        this.granted.set(turn.customer, (this.granted.get(turn.customer) ?? 0) + turn.allowance)
        return []
      case 'delete':
        // 404: an earlier try was one, whose answer was lost. What follows finds out whether it was.
        if (answer.status !== 200 && answer.status !== 404)
          return [`the deletion of ${turn.distinctId} got ${shown(answer)}`]
        this.deleted.add(turn.distinctId)
        return []
      case 'look':
        return answer.status === 200 ? [] : [`a profile got ${shown(answer)}`]
      default:
        return unreachable(turn)
    }
  }

  #event(item: Item, answer: Answer): string[] {
    const { fate } = item
    const { eventId } = answer.body as Record<string, unknown> // an object, as every answer
    if (answer.status === 200 && 'uuid' in fate && eventId === fate.uuid) return this.#accepted(item)
    const gone = answer.status === 410 && (fate.kind === 'contested' || fate.kind === 'deleted')
    return gone ? [] : [`an event that is ${fate.kind} got ${shown(answer)}`]
  }

  #batch(items: Item[], answer: Answer): string[] {
    const reply = answer.body as BatchReply // checked as far as it matters
    if (answer.status !== 200 || !adds(reply, items.length)) return [`a batch of ${items.length} got ${shown(answer)}`]
    const listed = new Map((reply.errors ?? []).map(({ index, error }) => [index, error]))
    const ids = (reply.eventIds ?? []).values()
    return items.flatMap((item, index) => {
      const error = listed.get(index)
      const { fate } = item
      if (error !== undefined) return fate.kind === 'taken' ? [`an event that is taken was refused: ${error}`] : []
      // One id for each accepted item, in the order they were sent.
      const id = ids.next().value
      if ('uuid' in fate && id === fate.uuid) return this.#accepted(item)
      this.unlisted++
      return []
    })
  }

  #accepted({ fate }: Item): string[] {
    if (!('uuid' in fate)) return []
    const event = this.events.get(fate.uuid)
    if (event && !event.acknowledged) {
      event.acknowledged = true
      this.acknowledged++
      if (event.effect.effect === 'step') this.#tell(event.effect)
    }
    return fate.kind === 'deleted' ? [`an event for ${fate.distinctId} was taken after the deletion`] : []
  }

  #tell({ story, step }: Extract<Effect, { effect: 'step' }>): void {
    const model = this.stories.get(story) ?? new Model()
    this.stories.set(story, model)
    model.apply(step)
  }

  #spend({ spend, conflicts }: { spend: Spend; conflicts: boolean }, answer: Answer): string[] {
    const { operationId } = spend
    if (answer.status !== (conflicts ? 409 : 200)) return [`operation ${operationId} got ${shown(answer)}`]
    if (conflicts) return []
    const { idempotentReplay: _, ...decision } = answer.body as Record<string, unknown> // an object, as every answer
    const known = this.operations.get(operationId)
    if (known === undefined) {
      this.operations.set(operationId, { spend, answer: decision })
      this.acknowledged++
      return []
    }
    if (isDeepStrictEqual(known.answer, decision)) return []
    return [`operation ${operationId} got ${JSON.stringify(decision)} and ${JSON.stringify(known.answer)}`]
  }

  #sent({ fate }: Item): void {
    if (!('uuid' in fate) || this.events.has(fate.uuid)) return
    const { distinctId } = fate
    this.events.set(fate.uuid, {
      distinctId,
      effect: fate.kind === 'taken' ? fate : { effect: 'none' },
      acknowledged: false,
    })
  }
}

/** Of a request or an answer in a fault. */
const wordsMax = 300

interface BatchReply {
  accepted: number
  processed: number
  failed: number
  total: number
  validationFailed: number
  rejectedFailed: number
  eventIds?: string[]
  errors?: { index: number; error: string }[]
}

/** Whether the sums of a batch's answer are what clients check. */
function adds(reply: BatchReply, total: number): boolean {
  const { accepted, processed, failed, validationFailed, rejectedFailed, eventIds = [], errors = [] } = reply
  const indexes = new Set(errors.map(({ index }) => index))
  return (
    reply.total === total &&
    accepted === processed &&
    failed === total - accepted &&
    failed === validationFailed + rejectedFailed &&
    eventIds.length === accepted &&
    errors.length === failed &&
    indexes.size === failed &&
    errors.every(({ index }) => index >= 0 && index < total)
  )
}

function unanswered(turn: Turn): string[] {
  if (turn.kind === 'event' && turn.once) return []
  return [`never answered: ${JSON.stringify(turn).slice(0, wordsMax)}`]
}

function itemsOf(turn: Turn): Item[] {
  if (turn.kind === 'event') return [turn.item]
  return turn.kind === 'batch' ? turn.items : []
}

function shown({ status, body }: Answer): string {
  return `${status} ${JSON.stringify(body).slice(0, wordsMax)}`
}
