import assert from 'node:assert/strict'
import test from 'node:test'
import fc from '../test/harness/random.ts'
import { readOptions } from './options.ts'
import { randomOf } from './random.ts'
import { patienceMsMax, scheduleOf } from './schedule.ts'
import { turnsOf } from './turns.ts'

test('a seed decides the troubles and everything the load sends; another seed decides otherwise', () => {
  const runOf = (seed: string) =>
    JSON.stringify([
      scheduleOf(seed).take(50).toArray(),
      ...[0, 1, 1000].map((client) =>
        turnsOf({ seed, client, flood: client >= 1000, deletes: true })
          .take(50)
          .toArray(),
      ),
    ])
  assert.equal(runOf('a'), runOf('a'))
  assert.notEqual(runOf('a'), runOf('b'))
})

test('two clients never send different events under one uuid', () => {
  const bodies = new Map<string, string>()
  for (const client of [0, 1, 2]) {
    for (const turn of turnsOf({ seed: 's', client, flood: false, deletes: true }).take(300)) {
      const items = turn.kind === 'batch' ? turn.items : turn.kind === 'event' ? [turn.item] : []
      for (const { fate } of items) {
        if (!('uuid' in fate)) continue
        const { kind: _, ...meaning } = fate
        const text = JSON.stringify({ ...meaning, effect: fate.kind === 'taken' ? fate.effect : '' })
        assert.equal(bodies.get(fate.uuid) ?? text, text)
        bodies.set(fate.uuid, text)
      }
    }
  }
})

test('ten minutes hold at least twenty kills, whatever the seed and however slow the machine is', () => {
  fc.assert(
    fc.property(fc.string({ minLength: 1 }), (seed) => {
      let [atMs, kills] = [0, 0]
      for (const { kind, afterMs, isPatient } of scheduleOf(seed)) {
        atMs += afterMs + (isPatient ? patienceMsMax : 0)
        if (atMs >= 600_000) break
        if (kind.startsWith('kill')) kills++
      }
      assert.ok(kills >= 20, `${kills}`)
    }),
    { numRuns: 200 },
  )
})

test('random choices stay within their bounds, and a shuffled list holds what it held', () => {
  const random = randomOf('seed', 'bounds')
  for (let i = 0; i < 1000; i++) assert.ok([0, 1, 2].includes(random.below(3)))
  assert.deepEqual(
    random.shuffled([1, 2, 3, 4]).toSorted((a, b) => a - b),
    [1, 2, 3, 4],
  )
  assert.match(random.uuid(), /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}$/)
})

test('options are two minutes and a random seed unless told, and nonsense is refused in one line', () => {
  assert.equal(readOptions([]).durationMs, 120_000)
  assert.match(readOptions([]).seed, /^\d+$/)
  assert.deepEqual(readOptions(['--minutes', '0.5', '--seed', 'a-1']), { durationMs: 30_000, seed: 'a-1' })
  for (const args of [['--minutes', 'x'], ['--minutes', '0'], ['--seed', 'a b'], ['--seed', ''], ['--more']])
    assert.throws(() => readOptions(args), Error)
})
