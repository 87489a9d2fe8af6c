import assert from 'node:assert/strict'
import test from 'node:test'
import { isRecognised, systemEvent, systemEvents } from './catalogue.ts'

test('a name of the app is recognised, a $ name only when it is in the catalogue', () => {
  for (const name of ['offer_shown', 'app$opened', '$identify', '$journey_leg_started', '$event_sent'])
    assert.ok(isRecognised(name), name)
  for (const name of ['$', '$unknown', '$Identify', '$segment_entered', '$create_alias', '$toString', '$__proto__']) {
    assert.ok(!isRecognised(name), name)
  }
})

test('every name stands once in the catalogue', () => {
  assert.equal(new Set(systemEvents.map(({ name }) => name)).size, systemEvents.length)
})

test('what a device says of purchases and usage starts nothing, and retired events never do', () => {
  assert.equal(systemEvent('$purchase_completed')?.triggerable, 'from_server')
  assert.equal(systemEvent('$feature_used')?.triggerable, 'from_server')
  for (const { name, group, triggerable } of systemEvents)
    if (group === 'retired') assert.equal(triggerable, 'never', name)
  assert.equal(systemEvent('$app_opened')?.triggerable, 'always')
})
