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

test('each system event has its group, may start something or not, and says who acts on it', () => {
  const named = (words: string) => words.split(' ').map((word) => `$${word}`)
  const table: [names: string[], group: string, triggerable: string, consumer: string | null][] = [
    [named('identify'), 'identity', 'never', 'customers'],
    [named('journey_leg_started journey_leg_completed'), 'journey', 'never', 'journeys'],
    [named('experiment_exposure experience_shown'), 'experiment', 'always', 'experiments'],
    [
      named(
        'purchase_completed purchase_failed purchase_cancelled purchase_pending purchase_synced restore_completed ' +
          'restore_failed restore_no_purchases feature_used',
      ),
      ...(['commerce', 'from_server', null] as const),
    ],
    [
      named(
        'journey_milestone experience_dismissed experience_errored experience_artifact_load_succeeded ' +
          'experience_artifact_load_failed screen_shown screen_dismissed link_opened customer_updated ' +
          'app_action_requested products_unavailable',
      ),
      ...(['interface', 'always', null] as const),
    ],
    [
      named(
        'app_installed app_updated app_opened app_backgrounded notifications_enabled notifications_denied ' +
          'permission_granted permission_denied tracking_authorized tracking_denied',
      ),
      ...(['lifecycle', 'always', null] as const),
    ],
    [
      named(
        'event_sent journey_start journey_started journey_node_executed journey_enrolled journey_transition ' +
          'journey_converted journey_exited journey_effect_requested journey_effect_completed journey_claimed ' +
          'journey_handoff journey_parked journey_superseded experiment_exposure_error experiment_exposure_fallback',
      ),
      ...(['retired', 'never', null] as const),
    ],
  ]
  const expected = table.flatMap(([names, group, triggerable, consumer]) =>
    names.map((name) => ({ name, group, triggerable, consumer })),
  )
  const byName = (a: { name: string }, b: { name: string }) => (a.name < b.name ? -1 : 1)
  assert.deepEqual(systemEvents.toSorted(byName), expected.toSorted(byName))
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
