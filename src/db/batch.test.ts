import assert from 'node:assert/strict'
import test from 'node:test'
import { setImmediate } from 'node:timers/promises'
import fc from '../../test/harness/random.ts'
import { Refusal } from '../kernel/errors.ts'
import { type BatchOptions, coalesce } from './batch.ts'

interface Item {
  key: string
  n: number
  weight?: number
  bad?: boolean
}

interface Started {
  items: Item[]
  lane: number
  finish: () => void
  fail: (error: Error) => void
}

/** Long enough for whatever waits for turns of the event loop only. */
async function turn(): Promise<void> {
  for (let i = 0; i < 5; i++) await setImmediate()
}

/** A coalescer whose work ends when the test says so. The answer to an item is its number. */
function bench(options: Partial<BatchOptions<Item, number>> = {}) {
  const started: Started[] = []
  let now = 0
  const add = coalesce<Item, number>({
    run: (items, lane) =>
      new Promise((resolve, reject) => {
        started.push({ items, lane, finish: () => resolve(items.map(({ n }) => n)), fail: reject })
      }),
    lanes: 1,
    itemsMax: 100,
    waitingMax: 1000,
    waitMsMax: 2000,
    now: () => now,
    splitOn: (error) => !(error instanceof Refusal),
    ...options,
  })
  return {
    add,
    started,
    numbers: () => started.map(({ items }) => items.map(({ n }) => n)),
    pass: (ms: number) => {
      now += ms
    },
  }
}

const item = (n: number, more: Partial<Item> = {}): Item => ({ key: 'a', n, ...more })
const isOverload = (error: unknown) =>
  error instanceof Refusal &&
  error.status === 503 &&
  error.code === 'service_unavailable' &&
  [1, 2, 3, 4, 5, 6, 7, 8].includes(error.detail.retryAfterS ?? 0)

test('a request starts at once when its lane is idle, and those that arrive meanwhile leave together in order', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout', 'setInterval'] })
  const { add, started, numbers } = bench()
  const answers = [add(item(1))]
  await turn()
  assert.deepEqual(numbers(), [[1]], 'no timer was waited for')
  answers.push(add(item(2)), add(item(3)))
  await turn()
  answers.push(add(item(4)))
  await turn()
  assert.deepEqual(numbers(), [[1]])
  started[0]?.finish()
  await turn()
  assert.deepEqual(numbers(), [[1], [2, 3, 4]])
  started[1]?.finish()
  assert.deepEqual(await Promise.all(answers), [1, 2, 3, 4])
})

test('requests that arrive in one go travel together from the first', async () => {
  const { add, started, numbers } = bench()
  const answers = [add(item(1)), add(item(2))]
  await turn()
  assert.deepEqual(numbers(), [[1, 2]])
  started[0]?.finish()
  assert.deepEqual(await Promise.all(answers), [1, 2])
})

test('items of one key never overtake each other nor run at the same time, and every item gets its own answer', async () => {
  const items = fc.array(
    fc.record({ key: fc.constantFrom('a', 'b', 'c', 'd', 'e'), turns: fc.nat(3), bad: fc.boolean() }),
    {
      maxLength: 60,
    },
  )
  await fc.assert(
    fc.asyncProperty(
      items,
      fc.integer({ min: 1, max: 4 }),
      fc.integer({ min: 1, max: 7 }),
      async (arrivals, lanes, itemsMax) => {
        const running = new Set<string>()
        const done = new Map<string, number[]>()
        let seed = 1
        const add = coalesce<Item, number>({
          async run(batch) {
            assert.ok(batch.length <= itemsMax)
            const keys = new Set(batch.map(({ key }) => key))
            for (const key of keys) assert.ok(!running.has(key), 'two at a time')
            for (const key of keys) running.add(key)
            seed = (seed * 7) % 11
            for (let i = 0; i < seed % 4; i++) await setImmediate()
            for (const key of keys) running.delete(key)
            if (batch.some(({ bad }) => bad)) throw new Error('bad')
            for (const { key, n } of batch) done.set(key, [...(done.get(key) ?? []), n])
            return batch.map(({ n }) => n)
          },
          ...{
            lanes,
            itemsMax,
            laneKey: ({ key }) => key,
            waitingMax: 1000,
            waitMsMax: 2000,
            now: () => 0,
            splitOn: () => true,
          },
        })
        const answers: Promise<number | string>[] = []
        for (const [n, { key, turns, bad }] of arrivals.entries()) {
          answers.push(add({ key, n, bad }).catch((error: Error) => error.message))
          for (let i = 0; i < turns; i++) await setImmediate()
        }
        assert.deepEqual(
          await Promise.all(answers),
          arrivals.map(({ bad }, n) => (bad ? 'bad' : n)),
        )
        for (const [key, order] of done) {
          const good = arrivals.flatMap((arrival, n) => (arrival.key === key && !arrival.bad ? [n] : []))
          assert.deepEqual(order, good)
        }
      },
    ),
    { numRuns: 100 },
  )
})

test('without keys any idle lane takes the next batch', async () => {
  const { add, started, numbers } = bench({ lanes: 2, itemsMax: 2 })
  const answers = [1, 2, 3, 4, 5].map((n) => add(item(n)))
  await turn()
  assert.deepEqual(numbers(), [
    [1, 2],
    [3, 4],
  ])
  started[1]?.finish()
  await turn()
  assert.deepEqual(numbers().at(-1), [5])
  assert.equal(started[2]?.lane, 1)
  for (const { finish } of started) finish()
  assert.deepEqual(await Promise.all(answers), [1, 2, 3, 4, 5])
})

test('the next batch is on its way before the answers of the last one are made', async () => {
  const { add, started, numbers } = bench({ itemsMax: 1 })
  const seen: number[][][] = []
  const answers = [1, 2].map((n) => add(item(n)).finally(() => seen.push(numbers())))
  await turn()
  started[0]?.finish()
  await turn()
  assert.deepEqual(seen, [[[1], [2]]])
  started[1]?.finish()
  assert.deepEqual(await Promise.all(answers), [1, 2])
})

test('nothing else runs in a lane while its failed batch is tried again', async () => {
  const { add, started, numbers } = bench({ itemsMax: 2 })
  const answers = [1, 2, 3].map((n) => add(item(n)))
  await turn()
  started[0]?.fail(new Error('one of them'))
  await turn()
  started[1]?.finish()
  await turn()
  assert.deepEqual(numbers(), [[1, 2], [1], [2]])
  started[2]?.finish()
  await turn()
  started[3]?.finish()
  assert.deepEqual(await Promise.all(answers), [1, 2, 3])
})

test('a full queue refuses before any work, and takes again when there is room', async () => {
  const { add, started } = bench({ waitingMax: 2 })
  const first = add(item(0))
  await turn()
  const waiting = [add(item(1)), add(item(2))]
  await assert.rejects(add(item(3)), isOverload)
  started[0]?.finish()
  await turn()
  const last = add(item(4))
  for (let i = 1; i < 3; i++) {
    started[i]?.finish()
    await turn()
  }
  assert.deepEqual(await Promise.all([first, ...waiting, last]), [0, 1, 2, 4])
})

test('one key can fill its own share of the queue only', async () => {
  const { add, started } = bench({ laneKey: ({ key }) => key, waitingPerKeyMax: 2 })
  const answers = [add(item(0))]
  await turn()
  answers.push(add(item(1)), add(item(2)))
  await assert.rejects(add(item(3)), isOverload)
  answers.push(add(item(4, { key: 'b' })))
  started[0]?.finish()
  await turn()
  answers.push(add(item(5)))
  await turn()
  started[1]?.finish()
  await turn()
  started[2]?.finish()
  assert.deepEqual(await Promise.all(answers), [0, 1, 2, 4, 5])
})

test('weight bounds what waits and what travels together, but an item of any weight passes when it is alone', async () => {
  const { add, started, numbers } = bench({ weigh: ({ weight = 0 }) => weight, weightMax: 10, batchWeightMax: 5 })
  const answers = [add(item(0, { weight: 99 }))]
  await turn()
  answers.push(add(item(1, { weight: 3 })), add(item(2, { weight: 3 })), add(item(3, { weight: 2 })))
  await assert.rejects(add(item(4, { weight: 3 })), isOverload)
  answers.push(add(item(5, { weight: 2 })))
  for (let i = 0; i < 3; i++) {
    started[i]?.finish()
    await turn()
  }
  assert.deepEqual(numbers(), [[0], [1], [2, 3], [5]])
  started[3]?.finish()
  assert.deepEqual(await Promise.all(answers), [0, 1, 2, 3, 5])
})

test('what waited too long is refused before any work, also while a batch hangs', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const { add, started, numbers, pass } = bench({ overloaded: 'billing_unavailable' })
  const hanging = add(item(0))
  await turn()
  const late = add(item(1)).catch((error: Refusal) => error.code)
  pass(1500)
  t.mock.timers.tick(1500)
  const young = add(item(2))
  pass(501)
  t.mock.timers.tick(501)
  assert.equal(await late, 'billing_unavailable', 'nothing has ended yet')
  started[0]?.finish()
  await turn()
  assert.deepEqual(numbers(), [[0], [2]])
  started[1]?.finish()
  assert.deepEqual(await Promise.all([hanging, young]), [0, 2])

  // And with the clock alone, should a timer be late.
  const next = add(item(3))
  await turn()
  const tooLate = add(item(4)).catch((error: Refusal) => error.code)
  pass(2001)
  started[2]?.finish()
  assert.deepEqual(await Promise.all([next, tooLate]), [3, 'billing_unavailable'])
  assert.deepEqual(numbers().slice(2), [[3]])
})

test('one bad item fails alone: its neighbours are tried again one by one, in order', async () => {
  const { add, started, numbers } = bench()
  const first = add(item(0))
  await turn()
  const answers = [add(item(1)), add(item(2)), add(item(3))].map((answer) =>
    answer.catch((error: Error) => error.message),
  )
  started[0]?.finish()
  await turn()
  started[1]?.fail(new Error('one of them'))
  await turn()
  started[2]?.finish()
  await turn()
  started[3]?.fail(new Error('it was me'))
  await turn()
  started[4]?.finish()
  assert.deepEqual(await Promise.all([first, ...answers]), [0, 1, 'it was me', 3])
  assert.deepEqual(numbers(), [[0], [1, 2, 3], [1], [2], [3]])
})

test('an error that is nobody’s fault fails the batch at once, and the next one is tried', async () => {
  const { add, started, numbers } = bench({ splitOn: () => false })
  const answers = [add(item(1)), add(item(2))].map((answer) => answer.catch((error: Error) => error.message))
  await turn()
  started[0]?.fail(new Error('away'))
  assert.deepEqual(await Promise.all(answers), ['away', 'away'])
  const next = add(item(3))
  await turn()
  started[1]?.finish()
  assert.equal(await next, 3)
  assert.deepEqual(numbers(), [[1, 2], [3]])
})

test('while a failed batch is tried one by one, those whose time is over are refused', async () => {
  const { add, started, numbers, pass } = bench()
  const answers = [1, 2, 3].map((n) => add(item(n)).catch((error: Refusal) => error.code))
  await turn()
  started[0]?.fail(new Error('timed out'))
  await turn()
  pass(2001)
  started[1]?.finish()
  assert.deepEqual(await Promise.all(answers), [1, 'service_unavailable', 'service_unavailable'])
  assert.deepEqual(numbers(), [[1, 2, 3], [1]])
})

test('a batch that gives too few results is answered with none of them', async () => {
  const results: number[][] = [[1], [1], [2, 3]]
  const { add } = bench({ run: async () => results.shift() ?? [] })
  const answers = [add(item(1)), add(item(2))].map((answer) => answer.catch((error: Error) => error.message))
  assert.deepEqual(await Promise.all(answers), [1, 'a batch of 1 gave 2 results'])
})
