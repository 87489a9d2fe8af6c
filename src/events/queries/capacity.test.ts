import assert from 'node:assert/strict'
import test from 'node:test'
import { capacityOf } from './capacity.ts'

test('questions and their workers take half of the cores, and as many questions as there may be before any worker', () => {
  const told = [1, 2, 3, 4, 6, 8, 15, 16, 24, 128].map((cores) => {
    const { questionsAtOnce, parallelWorkers } = capacityOf(cores)
    return [cores, questionsAtOnce, parallelWorkers]
  })
  assert.deepEqual(told, [
    [1, 1, 0],
    [2, 1, 0],
    [3, 1, 0],
    [4, 2, 0],
    [6, 3, 0],
    [8, 4, 0],
    [15, 4, 0],
    [16, 4, 1],
    [24, 4, 2],
    [128, 4, 2],
  ])
})
