import { setImmediate } from 'node:timers/promises'
import { type ErrorCode, refuse } from '../kernel/errors.ts'
import { retryAfterS } from '../kernel/retry-after.ts'

/**
 * Request coalescing. A request starts at once when its lane is idle; those that arrive while a batch is running leave
 * together as the next one. No timer starts work, so low load pays no delay, and one COMMIT pays for hundreds of requests.
 * The start is put off to the end of the event loop's poll phase only, so that requests read in one go travel together. A
 * lane's next batch is on its way before the answers of the last one are made: otherwise the database waits for them (a
 * sixth of the requests/s of a profile with legs, a tenth of those of `consume`).
 */
export interface BatchOptions<Item, Result> {
  /** Does the work of one batch: one result for each item, in order. `lane` is the number of the lane it runs in. */
  run: (items: Item[], lane: number) => Promise<Result[]>
  /** How many batches may be under way at once. */
  lanes: number
  /** Items of equal keys share a lane and so keep their order and never wait for one another's locks. Absent: any idle lane. */
  laneKey?: (item: Item) => string
  /** Most items in one batch; larger ones cost latency and bring nothing. */
  itemsMax: number
  /** Most items waiting; beyond it `overloaded` is thrown before any work. */
  waitingMax: number
  /** Most items of one laneKey waiting, so that one hot key can't fill the queue. */
  waitingPerKeyMax?: number
  /** Size of an item, the most that may wait, and the most that travels together (a quarter of it when absent). */
  weigh?: (item: Item) => number
  weightMax?: number
  batchWeightMax?: number
  /** Milliseconds in the queue after which an item is refused, whatever the batches under way are doing. */
  waitMsMax: number
  now: () => number
  /** Whether a failed batch may be tried again item by item, so that one bad item never fails its neighbours. */
  splitOn: (error: unknown) => boolean
  /** The refusal of a full queue. */
  overloaded?: Extract<ErrorCode, 'service_unavailable' | 'billing_unavailable'>
}

interface Waiting<Item, Result> {
  item: Item
  key: string | undefined
  weight: number
  since: number
  resolve: (result: Result) => void
  reject: (error: unknown) => void
}

type Outcome<Result> = { results: Result[] } | { error: unknown }

interface Running<Item, Result> {
  batch: Waiting<Item, Result>[]
  ended: Promise<Outcome<Result>>
}

export function coalesce<Item, Result>(options: BatchOptions<Item, Result>): (item: Item) => Promise<Result> {
  const { run, lanes, laneKey, itemsMax, waitingMax, waitMsMax, now, splitOn } = options
  const waitingPerKeyMax = options.waitingPerKeyMax ?? waitingMax
  const weightMax = options.weightMax ?? Number.POSITIVE_INFINITY
  const batchWeightMax = options.batchWeightMax ?? weightMax / 4
  const overloaded = options.overloaded ?? 'service_unavailable'
  const queues: Waiting<Item, Result>[][] = Array.from({ length: laneKey ? lanes : 1 }, () => [])
  const busy: boolean[] = Array.from({ length: lanes }, () => false)
  const perKey = new Map<string, number>()
  let waiting = 0
  let waitingWeight = 0
  let scheduled = false
  let watching = false

  function add(item: Item): Promise<Result> {
    const key = laneKey?.(item)
    const weight = options.weigh?.(item) ?? 0
    const ofKey = key === undefined ? 0 : (perKey.get(key) ?? 0)
    if (waiting >= waitingMax || ofKey >= waitingPerKeyMax || (waiting > 0 && waitingWeight + weight > weightMax)) {
      return Promise.reject(
        refuse(overloaded, { retryAfterS: retryAfterS(), message: 'Too many requests are waiting. Retry.' }),
      )
    }
    waiting++
    waitingWeight += weight
    if (key !== undefined) perKey.set(key, ofKey + 1)
    return new Promise((resolve, reject) => {
      const queue = queues[key === undefined ? 0 : laneOf(key, lanes)]
      queue?.push({ item, key, weight, since: now(), resolve, reject })
      if (!watching) watch(waitMsMax + 1)
      if (!scheduled) {
        scheduled = true
        void setImmediate().then(startIdle)
      }
    })
  }

  function startIdle(): void {
    scheduled = false
    for (let lane = 0; lane < lanes; lane++) {
      if (!busy[lane]) void drain(lane)
    }
  }

  async function drain(lane: number): Promise<void> {
    busy[lane] = true
    try {
      let running = start(take(lane), lane)
      while (running) running = await turn(running, lane)
    } finally {
      busy[lane] = false
    }
  }

  /** Sees a batch through and gives the next one. What failed is tried again before anything else runs in its lane. */
  async function turn({ batch, ended }: Running<Item, Result>, lane: number) {
    const outcome = await ended
    if ('error' in outcome) {
      await retry(batch, outcome.error, lane)
      return start(take(lane), lane)
    }
    await setImmediate()
    const next = start(take(lane), lane)
    // Until it has left: connections are handed over, and written to, between two of the event loop's turns.
    if (next) await setImmediate()
    answer(batch, outcome.results)
    return next
  }

  /** The next batch in arrival order. */
  function take(lane: number): Waiting<Item, Result>[] {
    const queue = queues[laneKey ? lane : 0] ?? []
    refuseLate(queue)
    let taken = 0
    let weight = 0
    for (const entry of queue) {
      if (taken >= itemsMax || (taken > 0 && weight + entry.weight > batchWeightMax)) break
      taken++
      weight += entry.weight
      leave(entry)
    }
    return queue.splice(0, taken)
  }

  /** Refuses what waited too long, before any work is done for it. */
  function refuseLate(queue: Waiting<Item, Result>[]): void {
    let late = 0
    for (const entry of queue) {
      if (!isLate(entry)) break
      late++
      leave(entry)
      refuseEntry(entry)
    }
    queue.splice(0, late)
  }

  /** One timer for all that wait, so that a batch that hangs keeps nobody beyond the deadline. */
  function watch(ms: number): void {
    watching = true
    const timer = setTimeout(() => {
      watching = false
      for (const queue of queues) refuseLate(queue)
      const oldest = Math.min(...queues.map(([first]) => first?.since ?? Number.POSITIVE_INFINITY))
      if (waiting > 0) watch(Math.max(1, oldest + waitMsMax + 1 - now()))
    }, ms)
    timer.unref()
  }

  function isLate({ since }: Waiting<Item, Result>): boolean {
    return since < now() - waitMsMax
  }

  function refuseEntry(entry: Waiting<Item, Result>): void {
    entry.reject(refuse(overloaded, { retryAfterS: retryAfterS(), message: 'The request waited too long. Retry.' }))
  }

  function leave(entry: Waiting<Item, Result>): void {
    waiting--
    waitingWeight -= entry.weight
    if (entry.key === undefined) return
    const rest = (perKey.get(entry.key) ?? 1) - 1
    if (rest > 0) perKey.set(entry.key, rest)
    else perKey.delete(entry.key)
  }

  function start(batch: Waiting<Item, Result>[], lane: number): Running<Item, Result> | undefined {
    return batch.length === 0 ? undefined : { batch, ended: outcomeOf(batch, lane) }
  }

  async function outcomeOf(batch: Waiting<Item, Result>[], lane: number): Promise<Outcome<Result>> {
    try {
      const results = await run(
        batch.map((entry) => entry.item),
        lane,
      )
      if (results.length !== batch.length) throw new Error(`a batch of ${batch.length} gave ${results.length} results`)
      return { results }
    } catch (error) {
      return { error }
    }
  }

  function answer(batch: Waiting<Item, Result>[], results: Result[]): void {
    for (let i = 0; i < batch.length; i++) batch[i]?.resolve(results[i] as Result) // same length, checked before
  }

  async function retry(batch: Waiting<Item, Result>[], error: unknown, lane: number): Promise<void> {
    if (batch.length > 1 && splitOn(error)) return oneByOne(batch, lane)
    for (const entry of batch) entry.reject(error)
  }

  /** Those whose time is over meanwhile are refused: each try may take as long as the failed one did. */
  async function oneByOne(batch: Waiting<Item, Result>[], lane: number): Promise<void> {
    for (const entry of batch) {
      if (isLate(entry)) {
        refuseEntry(entry)
        continue
      }
      const outcome = await outcomeOf([entry], lane)
      if ('error' in outcome) entry.reject(outcome.error)
      else answer([entry], outcome.results)
    }
  }

  return add
}

function laneOf(key: string, lanes: number): number {
  let sum = 0
  for (let i = 0; i < key.length; i++) sum = (Math.imul(sum, 31) + key.charCodeAt(i)) | 0
  return (sum >>> 0) % lanes
}
