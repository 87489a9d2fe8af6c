import { isRetryable } from '../../db/pool.ts'
import { StaleSlice } from '../../events/index.ts'

/** Runs all of them, in halves where something fails, until what fails stands alone. What may succeed later is thrown. */
export async function bisected<Item>(
  items: readonly Item[],
  {
    run,
    failed,
  }: { run: (some: readonly Item[]) => Promise<void>; failed: (item: Item, error: unknown) => Promise<void> },
): Promise<void> {
  const waiting: (readonly Item[])[] = [items]
  for (let some = waiting.pop(); some !== undefined; some = waiting.pop()) {
    try {
      await run(some)
    } catch (error) {
      if (error instanceof StaleSlice || isRetryable(error)) throw error
      const [only] = some
      if (only !== undefined && some.length === 1) await failed(only, error)
      else waiting.push(some.slice(some.length >> 1), some.slice(0, some.length >> 1))
    }
  }
}
