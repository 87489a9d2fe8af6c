import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { testDatabase } from '../../../test/harness/database.ts'
import { testScope } from '../../../test/harness/lane.ts'
import { Pool, type Tx } from '../../db/pool.ts'
import { Refusal } from '../../kernel/errors.ts'
import { ensurePartitions } from '../partitions.ts'
import { segments } from './membership-store.ts'
import { createAnalytics, querySettings } from './query.ts'
import type { EventQuery } from './types.ts'

const database = await testDatabase()
const { pool, url } = database
await ensurePartitions(pool)
const scope = await testScope(pool)
// More connections than may be used at once: whoever waits, waits for a turn.
const queryPool = new Pool(url, { name: 'test turns', max: 4, pipeline: true, settings: querySettings })
after(async () => {
  await queryPool[Symbol.asyncDispose]()
  await database[Symbol.asyncDispose]()
})

const range = { start: Date.parse('2026-03-28T00:00:00Z'), end: Date.parse('2026-03-29T00:00:00Z'), zone: 'UTC' }
const question: EventQuery = {
  ...{ type: 'funnel', appId: null, range, filters: [], windowMs: 1000, order: 'ordered', start: 'first' },
  steps: ['seen', 'bought'].map((event) => ({ event, filters: [] })),
}

const isRefused = (code: string) => (error: unknown) =>
  error instanceof Refusal && error.code === code && (error.detail.retryAfterS ?? 0) > 0

/** Questions, one at a time; `pass` lets time go by. */
function asking() {
  let passed = 0
  const clock = { now: () => passed }
  const analytics = createAnalytics({ pool: queryPool, lookupPool: queryPool, atOnce: 1, clock, segments })
  return {
    ask: (options?: { isLater?: boolean; msMax?: number; signal?: AbortSignal }) =>
      analytics.query(scope, question, options),
    pass: (ms: number) => {
      passed += ms
    },
  }
}

/** While `work` runs, no question gets on. */
async function whileLocked(work: (tx: Tx) => Promise<void>): Promise<void> {
  await pool.transaction(async (tx) => {
    await tx.query('set local idle_in_transaction_session_timeout = 0')
    await tx.query('lock table event in access exclusive mode')
    await work(tx)
  })
}

async function untilWorking(count: number): Promise<void> {
  const working = `select pid from pg_stat_activity
    where datname = current_database() and application_name = 'turnpike test turns' and wait_event_type = 'Lock'`
  while ((await pool.query(working)).length !== count);
}

describe('a question whose turn has not come', () => {
  test('waits for those before it, in the order in which they asked', async () => {
    const { ask } = asking()
    const answered: number[] = []
    const all: Promise<void>[] = []
    await whileLocked(async () => {
      for (const n of [1, 2, 3, 4]) all.push(ask().then(() => void answered.push(n)))
      await untilWorking(1)
      // It would have found a connection.
      await assert.rejects(ask({ msMax: 1 }), isRefused('service_unavailable'))
      await untilWorking(1)
    })
    await Promise.all(all)
    assert.deepEqual(answered, [1, 2, 3, 4])
  })

  test('is told to come again when its time is over, and also when too little was left for it', async () => {
    const { ask, pass } = asking()
    const gone = new AbortController()
    await whileLocked(async () => {
      await assert.rejects(ask({ msMax: 1 }), isRefused('query_timeout'), 'it had its turn')
      const first = ask({ signal: gone.signal })
      await untilWorking(1)
      await assert.rejects(ask({ msMax: 1 }), isRefused('service_unavailable'))
      const second = ask()
      pass(9_990)
      gone.abort()
      await assert.rejects(first)
      await assert.rejects(second, isRefused('service_unavailable'))
    })
  })

  test('is not asked any more when its caller has gone', async () => {
    const { ask } = asking()
    const gone = new AbortController()
    const answered: Promise<object>[] = []
    await whileLocked(async () => {
      answered.push(ask())
      await untilWorking(1)
      const leaving = ask({ signal: gone.signal })
      answered.push(ask())
      gone.abort()
      await assert.rejects(leaving, Refusal)
    })
    await Promise.all(answered)
    await ask()
  })

  test('waits for none of those that are answered later, nor they for it', async () => {
    const { ask } = asking()
    const answered: Promise<object>[] = []
    await whileLocked(async () => {
      answered.push(ask({ isLater: true }), ask({ isLater: true }))
      await untilWorking(1)
      answered.push(ask(), ask())
      await untilWorking(2)
    })
    await Promise.all(answered)
  })
})
