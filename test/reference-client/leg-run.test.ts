import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Leg } from '../conformance/leg.ts'
import { altered, type Sample } from '../conformance/samples/publish.ts'
import { welcome } from '../conformance/samples/welcome.ts'
import { begin, type Progress, proceed, type Run } from './leg-run.ts'

const around = { values: { event: {}, responses: {}, properties: {} }, assignments: {}, nowMs: 1000 }
const legOf = (...steps: Sample[]): Leg => {
  const { leg } = altered(welcome(), 'leg.steps', [...steps, { kind: 'complete', id: 'end', outcome: 'done' }])
  return { ...leg, entryStepId: steps[0].id, completionOutputs: {} }
}
const step = (id: string, action: Sample, outlets: Sample = { next: 'end' }) => ({
  kind: 'action',
  id,
  action,
  outlets,
})
const go = (leg: Leg, more: object = {}, run: Run = begin(leg)): Progress => proceed(leg, run, { ...around, ...more })

describe('a leg', () => {
  test('reports what it is told to, and ends with its outcome and the declared outputs', () => {
    const { emitted, ended } = go(welcome().leg, { values: { ...around.values, event: { source: 'mail', more: 1 } } })
    assert.deepEqual(emitted, [{ event: 'welcome_offered', properties: { campaign: 'welcome' }, stepId: 'tell' }])
    assert.deepEqual(ended, { outcome: 'continue', outputs: { event: { source: 'mail' }, responses: {} } })
  })

  test('follows the assigned variant, and the authored one without an assignment or with a foreign one', () => {
    const assigned = (xp_hello: Sample) => go(welcome().leg, { assignments: { xp_hello } }).emitted.length
    assert.equal(assigned({ variantId: 'h', isHoldout: true }), 0)
    assert.equal(assigned({ variantId: 'z', isHoldout: false }), 1)
    assert.equal(assigned(null), 1)
  })

  test('takes the first branch that holds, or the default', () => {
    const is = (value: string) => ({
      type: 'Compare',
      op: '==',
      left: { type: 'Event.Field', key: 'plan' },
      right: { type: 'String', value },
    })
    const branches = [
      { id: 'a', condition: is('pro') },
      {
        id: 'b',
        condition: {
          type: 'Any',
          conditions: [is('free'), { type: 'Truthy', value: { type: 'Event.Field', key: 'x' } }],
        },
      },
    ]
    const exits = ['a', 'b', 'default'].map((reason) => step(reason, { type: 'exit', reason }))
    const leg = legOf(step('s', { type: 'condition', branches }, { a: 'a', b: 'b', default: 'default' }), ...exits)
    const outcome = (event: object) => go(leg, { values: { ...around.values, event } }).ended?.outcome
    assert.deepEqual([{ plan: 'pro' }, { plan: 'free' }, { plan: 'x' }, {}].map(outcome), [
      'a',
      'b',
      'default',
      'default',
    ])
  })

  test('rests for as long as it was told, over any number of looks', () => {
    const leg = legOf(step('s', { type: 'delay', durationMs: 500 }))
    const { run, ended } = go(leg)
    assert.deepEqual([run.restsUntil, ended], [1500, undefined])
    assert.equal(go(leg, { nowMs: 1499 }, run).ended, undefined)
    assert.equal(go(leg, { nowMs: 1500 }, run).ended?.outcome, 'done')
  })

  test('waits for an event, or until it has waited enough', () => {
    const condition = { type: 'Truthy', value: { type: 'Event.Field', key: 'ok' } }
    const action = { type: 'wait_until', trigger: { kind: 'event', eventName: 'paid' }, condition, maxTimeMs: 100 }
    const late = step('late', { type: 'exit', reason: 'late' })
    const leg = legOf(step('s', action, { satisfied: 'end', timeout: 'late' }), late)
    const { run } = go(leg)
    const woken = (event: string, ok: boolean) =>
      go(leg, { event, values: { ...around.values, event: { ok } } }, run).ended?.outcome
    assert.deepEqual([woken('paid', true), woken('paid', false), woken('other', true)], ['done', undefined, undefined])
    assert.equal(go(leg, { nowMs: 1100 }, run).ended?.outcome, 'late')
  })

  test('is abandoned where it leads nowhere, lacks a value, or never ends', () => {
    const lacking = { type: 'send_event', eventName: 'e', payload: { a: { type: 'Event.Field', key: 'gone' } } }
    const endless = step('s', { type: 'submit_response' }, { next: 's' })
    for (const leg of [legOf(step('s', { type: 'submit_response' }, {})), legOf(step('s', lacking)), legOf(endless)]) {
      assert.equal(go(leg).ended?.outcome, 'abandoned')
    }
    const needy = altered(welcome(), 'leg.completionOutputs.continue.eventFields.0.required', true)
    assert.deepEqual(go(needy.leg).ended, { outcome: 'abandoned', outputs: { event: {}, responses: {} } })
  })
})
