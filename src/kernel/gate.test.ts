import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Refusal } from './errors.ts'
import { createGate } from './gate.ts'

const isBusy = (error: unknown) =>
  error instanceof Refusal && error.code === 'service_unavailable' && (error.detail.retryAfterS ?? 0) > 0

/** Work that begins when its turn has come and ends, having begun, when it is told to. */
function works() {
  const begun: number[] = []
  const all = Array.from({ length: 6 }, () => ({
    began: Promise.withResolvers<void>(),
    ended: Promise.withResolvers<void>(),
  }))
  return {
    begun,
    end: async (n: number) => {
      await all[n]?.began.promise
      all[n]?.ended.resolve()
    },
    work: (n: number) => async () => {
      begun.push(n)
      all[n]?.began.resolve()
      await all[n]?.ended.promise
      return n
    },
  }
}

test('so many run at once, so many wait in order, and one more is told to come again', async () => {
  const gate = createGate({ atOnce: 2, waitingMax: 3 })
  const { begun, end, work } = works()
  const running = [0, 1, 2, 3, 4].map((n) => gate(work(n)))
  await assert.rejects(gate(work(5)), isBusy)
  assert.deepEqual(begun, [0, 1])
  for (let n = 0; n < 5; n++) {
    await end(n)
    assert.equal(await running[n], n)
  }
  assert.deepEqual(begun, [0, 1, 2, 3, 4])
})

test('work that fails gives its place on', async () => {
  const gate = createGate({ atOnce: 1, waitingMax: 1 })
  const failing = gate(() => Promise.reject(new Error('no')))
  const waiting = gate(async () => 'done')
  await assert.rejects(failing)
  assert.equal(await waiting, 'done')
})

describe('who waits', () => {
  test('waits no longer than it will, and leaves its place in the queue to another', async () => {
    const gate = createGate({ atOnce: 1, waitingMax: 2 })
    const { begun, end, work } = works()
    const running = gate(work(0))
    const waiting = gate(work(1))
    await assert.rejects(gate(work(2), { msMax: 1 }), isBusy)
    const late = gate(work(3), { msMax: 60_000 })
    await end(0)
    await running
    await end(1)
    await waiting
    await end(3)
    assert.equal(await late, 3)
    assert.deepEqual(begun, [0, 1, 3])
  })

  test('leaves the queue when nobody waits for it any more, and keeps a turn that has come', async () => {
    const gate = createGate({ atOnce: 1, waitingMax: 2 })
    const { begun, end, work } = works()
    const [gone, late] = [new AbortController(), new AbortController()]
    const running = gate(work(0))
    const leaving = gate(work(1), { signal: gone.signal })
    const waiting = gate(work(2), { signal: late.signal })
    gone.abort()
    await assert.rejects(leaving, isBusy)
    await assert.rejects(gate(work(3), { signal: gone.signal }), isBusy)
    await end(0)
    await running
    late.abort()
    await end(2)
    assert.equal(await waiting, 2)
    assert.deepEqual(begun, [0, 2])
    assert.equal(await gate(async () => 'free'), 'free')
  })

  test('is told to come again when the gate closes; what runs ends', async () => {
    const closing = new AbortController()
    const gate = createGate({ atOnce: 1, waitingMax: 3, closed: closing.signal })
    const { begun, end, work } = works()
    const running = gate(work(0))
    const waiting = [gate(work(1)), gate(work(2))]
    closing.abort()
    for (const one of waiting) await assert.rejects(one, isBusy)
    await assert.rejects(gate(work(3)), isBusy)
    await end(0)
    assert.equal(await running, 0)
    assert.deepEqual(begun, [0])
  })
})
