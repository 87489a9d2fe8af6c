import assert from 'node:assert/strict'
import test from 'node:test'
import { Refusal } from '../kernel/errors.ts'
import { createGate } from './gate.ts'

test('so many run at once, so many wait in order, and one more is told to come again', async () => {
  const gate = createGate({ atOnce: 2, waitingMax: 3 })
  const begun: number[] = []
  const ends: (() => void)[] = []
  const work = (n: number) => () => {
    begun.push(n)
    return new Promise<number>((resolve) => ends.push(() => resolve(n)))
  }
  const running = [0, 1, 2, 3, 4].map((n) => gate(work(n)))
  await assert.rejects(gate(work(5)), (error) => error instanceof Refusal && error.code === 'service_unavailable')
  assert.deepEqual(begun, [0, 1])
  for (let n = 0; n < 5; n++) {
    ends[n]?.()
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
