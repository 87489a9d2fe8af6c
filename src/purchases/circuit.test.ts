import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from '../../test/harness/random.ts'
import { circuitFailuresMax, circuitRestMs, circuitRestMsMax } from '../kernel/limits.ts'
import { type Circuit, closed, enter, leave } from './circuit.ts'

const fail = (circuit: Circuit, times: number, now = 0): Circuit =>
  times === 0 ? circuit : fail(leave(circuit, 'failed', now), times - 1, now)

test('only failures in a row open it, and any answer begins the count anew', () => {
  assert.equal(fail(closed, circuitFailuresMax - 1).kind, 'closed')
  assert.equal(fail(closed, circuitFailuresMax).kind, 'open')
  const interrupted = leave(fail(closed, circuitFailuresMax - 1), 'answered', 0)
  assert.equal(fail(interrupted, circuitFailuresMax - 1).kind, 'closed')
  assert.equal(leave(fail(closed, circuitFailuresMax - 1), 'unknown', 0).kind, 'closed')
})

test('while it rests nobody asks; then one tries, and its answer lets everybody in', () => {
  const open = fail(closed, circuitFailuresMax)
  assert.equal(enter(open, 0).restMs, circuitRestMs)
  assert.equal(enter(open, circuitRestMs - 1).restMs, 1)
  const first = enter(open, circuitRestMs)
  assert.equal(first.restMs, 0)
  assert.ok(enter(first.circuit, circuitRestMs).restMs > 0, 'a second one waits')
  assert.equal(enter(leave(first.circuit, 'answered', circuitRestMs), circuitRestMs).restMs, 0)
})

test('each try that fails doubles the rest, up to a minute; one that was given up lets the next one try', () => {
  let circuit = fail(closed, circuitFailuresMax)
  let now = 0
  const rests: number[] = []
  for (let n = 0; n < 7; n++) {
    const { restMs } = enter(circuit, now)
    rests.push(restMs / circuitRestMs)
    now += restMs
    circuit = leave(enter(circuit, now).circuit, 'failed', now)
  }
  assert.deepEqual(rests, [1, 2, 4, 8, circuitRestMsMax / circuitRestMs, 12, 12])
  now += circuitRestMsMax
  circuit = leave(enter(circuit, now).circuit, 'unknown', now)
  assert.equal(enter(circuit, now).restMs, 0)
})

test('whatever happens, a store that answers again is asked by everybody after the longest rest and one try', () => {
  const how = fc.constantFrom('answered', 'failed', 'unknown') as fc.Arbitrary<'answered' | 'failed' | 'unknown'>
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.nat(120_000), how)), (steps) => {
      let now = 0
      let circuit = closed
      for (const [waitMs, outcome] of steps) {
        now += waitMs
        const entered = enter(circuit, now)
        circuit = entered.circuit
        if (entered.restMs > 0) {
          assert.ok(entered.restMs <= circuitRestMsMax)
          continue
        }
        circuit = leave(circuit, outcome, now)
        assert.notEqual(circuit.kind, 'trying', 'whoever tried has left')
      }
      now += circuitRestMsMax
      const last = enter(circuit, now)
      assert.equal(last.restMs, 0)
      assert.deepEqual(leave(last.circuit, 'answered', now), closed)
    }),
  )
})
