import assert from 'node:assert/strict'
import test from 'node:test'
import { factNames, isRecognised, systemEvent, systemEvents } from './catalogue.ts'

test('a name of the app is recognised, a $ name only when it is in the catalogue', () => {
  for (const name of ['offer_shown', 'app$opened', '$identify', '$journey_leg_started', '$event_sent'])
    assert.ok(isRecognised(name, { fact: false }), name)
  for (const name of ['$', '$unknown', '$Identify', '$segment_entered', '$create_alias', '$toString', '$__proto__']) {
    assert.ok(!isRecognised(name, { fact: false }), name)
  }
})

test('the name of a fact is recognised of a fact of the service, and of nothing that anybody sent', () => {
  for (const name of factNames) {
    assert.ok(isRecognised(name, { fact: true }), name)
    assert.ok(!isRecognised(name, { fact: false }), name)
  }
  assert.ok(!isRecognised('$unknown', { fact: true }))
})

test('every name stands once in the catalogue', () => {
  const names = [...systemEvents.map(({ name }) => name), ...factNames]
  assert.equal(new Set(names).size, names.length)
})

test('what a device says of purchases and usage starts nothing, and retired events never do', () => {
  assert.equal(systemEvent('$purchase_completed')?.triggerable, 'from_server')
  assert.equal(systemEvent('$feature_used')?.triggerable, 'from_server')
  for (const { name, group, triggerable } of systemEvents)
    if (group === 'retired') assert.equal(triggerable, 'never', name)
  assert.equal(systemEvent('$app_opened')?.triggerable, 'always')
})
