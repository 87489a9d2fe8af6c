import { verb } from '../../db/verb.ts'

export interface Holdups<Item, Result> {
  /** Whether somebody waits for this key; whoever comes later stands behind them. */
  has: (key: string) => boolean
  add: (key: string, item: Item) => Promise<Result>
}

/**
 * Items whose key somebody else holds, each key in a queue of its own: what waits for one key stalls no other, and all that
 * has gathered meanwhile goes together when its turn comes. `run` is given items of one key.
 */
export function holdups<Item, Result>(options: Parameters<typeof verb<Item, Result>>[0]): Holdups<Item, Result> {
  const queues = new Map<string, { one: (item: Item) => Promise<Result>; waiting: number }>()
  return {
    has: (key) => queues.has(key),
    async add(key, item) {
      const queue = queues.get(key) ?? { one: verb(options), waiting: 0 }
      queues.set(key, queue)
      queue.waiting++
      try {
        return await queue.one(item)
      } finally {
        if (--queue.waiting === 0) queues.delete(key)
      }
    },
  }
}
