import assert from 'node:assert/strict'
import test from 'node:test'
import { readScenarios, type Step } from '../../store-sim/scenarios/scenario.ts'

const scenarios = readScenarios()
const kinds = [
  'buy',
  'verb',
  'submit',
  'clock',
  'identify',
  'faults',
  'service',
  'acknowledged',
  'entitled',
  'invariants',
]

test('there are scenarios for both stores, each under a name of its own', () => {
  assert.ok(scenarios.length >= 12)
  assert.equal(new Set(scenarios.map(({ name }) => name)).size, scenarios.length)
  assert.deepEqual([...new Set(scenarios.map(({ store }) => store))].toSorted(), ['appstore', 'playstore'])
})

test('every step is of one known kind and speaks of purchases that were made', () => {
  for (const { name, steps } of scenarios) {
    const made = new Set<string>()
    for (const step of steps) {
      const [kind = '', ...more] = Object.keys(step)
      assert.ok(kinds.includes(kind) && more.length === 0, `${name}: ${JSON.stringify(step)}`)
      const of = spokenOf(step)
      assert.ok(of === undefined || made.has(of), `${name}: nobody made ${of}`)
      if ('buy' in step) made.add(step.buy.as)
      if ('verb' in step && step.verb.as !== undefined) made.add(step.verb.as)
    }
    assert.ok(
      steps.some((step) => 'entitled' in step),
      `${name} says what the service has to say`,
    )
  }
})

function spokenOf(step: Step): string | undefined {
  if ('verb' in step) return step.verb.of
  if ('submit' in step) return step.submit.of
  return 'acknowledged' in step ? step.acknowledged : undefined
}
