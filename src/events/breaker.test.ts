import assert from 'node:assert/strict'
import test from 'node:test'
import { deadInRowMax, deadOfLastMax, deadWindowRows } from '../kernel/limits.ts'
import { type Breaker, closed, halfOpen, reasonToStop, rowDied, rowsApplied } from './breaker.ts'

const died = (breaker: Breaker, times: number) => Array.from({ length: times }).reduce<Breaker>(rowDied, breaker)

test('20 dead events in a row stop a lane, 19 do not, nor do 20 with an applied one between them', () => {
  assert.equal(reasonToStop(died(closed, deadInRowMax - 1)), null)
  assert.match(reasonToStop(died(closed, deadInRowMax)) ?? '', /^20 events in a row/)
  const between = rowsApplied(died(closed, deadInRowMax - 1), 1)
  assert.equal(reasonToStop(died(between, deadInRowMax - 1)), null)
})

test('5 % of the last 1,000 stop a lane, wherever among them they are; older ones no longer count', () => {
  const every = (rows: number, times: number) =>
    Array.from({ length: times }).reduce<Breaker>((breaker) => rowDied(rowsApplied(breaker, rows - 1)), closed)
  assert.equal(reasonToStop(every(20, deadOfLastMax - 1)), null)
  assert.match(reasonToStop(every(20, deadOfLastMax)) ?? '', /^50 of the last 1000/)
  assert.equal(reasonToStop(every(21, 500)), null)
  const old = rowsApplied(every(2, deadOfLastMax - 1), deadWindowRows)
  assert.equal(reasonToStop(died(old, 10)), null)
})

test('a lane that was stopped stops again at the first dead event, and not after an applied one', () => {
  assert.notEqual(reasonToStop(rowDied(halfOpen)), null)
  assert.equal(reasonToStop(rowDied(rowsApplied(halfOpen, 1))), null)
  assert.equal(rowsApplied(halfOpen, 0), halfOpen)
})
