import { type ErrorCode, Refusal } from '../kernel/errors.ts'
import { type BatchOptions, coalesce } from './batch.ts'
import { isConnectionLoss, unavailable } from './pool.ts'

type VerbOptions<Item, Result> = Omit<BatchOptions<Item, Result | Refusal>, 'splitOn' | 'overloaded'> & {
  /** The 503 of a full queue and of a database that is away. */
  overloaded: Extract<ErrorCode, 'service_unavailable' | 'billing_unavailable'>
}

/** A coalesced verb. Its batch answers each item with a result or a refusal; a failing batch is tried again item by item. */
export function verb<Item, Result>(options: VerbOptions<Item, Result>): (item: Item) => Promise<Result> {
  const one = coalesce<Item, Result | Refusal>({
    ...options,
    splitOn: (error) => !(error instanceof Refusal) && !isConnectionLoss(error),
  })
  return async (item) => {
    try {
      const result = await one(item)
      if (result instanceof Refusal) throw result
      return result
    } catch (error) {
      throw unavailable(error, options.overloaded)
    }
  }
}
