import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from '../../../test/harness/random.ts'
import type { Journey, Origin } from '../types.ts'
import { next } from './next.ts'
import { aPlan, hourMs, step } from './testing/a-plan.ts'
import { type Act, anyAct, anyPlan, type Logged, play, Run, sections } from './testing/model-run.ts'

const anyRun = [
  anyPlan,
  fc.constantFrom<Origin>('api', 'event', 'device'),
  fc.array(anyAct, { maxLength: 30 }),
] as const
const runs = { numRuns: 400 }

test('a journey goes where the plan, read as a graph, says', () => {
  fc.assert(
    fc.property(...anyRun, (plan, by, acts) => {
      const run = play(plan, by, acts)
      const grants = run.log.flatMap(({ effects }) => effects.filter(({ kind }) => kind === 'grant'))
      assert.equal(grants.length, run.stand.granted)
    }),
    runs,
  )
})

test('1 an input that comes again changes nothing, whatever it was', () => {
  fc.assert(
    fc.property(...anyRun, (plan, by, acts) => {
      play(plan, by, acts, (run, { input }) => {
        const { journey } = run
        const log = run.log.length
        assert.notEqual(run.tell(input), 'applied')
        assert.deepEqual([run.journey, run.log.length], [journey, log])
      })
    }),
    runs,
  )
})

test('2 revs count from 1 without a gap, and the log replayed gives every state and effect again', () => {
  fc.assert(
    fc.property(...anyRun, (plan, by, acts) => {
      const run = play(plan, by, acts)
      let journey: Journey | null = null
      for (const [i, logged] of run.log.entries()) {
        // As it comes back from the tables.
        const { input, facts } = JSON.parse(JSON.stringify(logged)) as Logged
        const outcome = next(run.plan, journey, input, facts, logged.now)
        if (outcome.needs) throw new Error('its facts were noted')
        journey = outcome.journey
        assert.equal(journey?.rev, i + 1)
        assert.deepEqual([journey, outcome.effects], [logged.journey, logged.effects])
      }
      assert.deepEqual(journey, run.journey)
    }),
    runs,
  )
})

test('3 an ended journey has no timer, wait or offered leg, and never opens again', () => {
  fc.assert(
    fc.property(...anyRun, (plan, by, acts) => {
      play(plan, by, acts, (run, { before }) => {
        const { status, timers, wait, sectionKey } = run.open()
        if (before.status === 'ended') assert.equal(status, 'ended')
        if (status !== 'ended') return
        assert.deepEqual([timers, wait, sectionKey], [{}, null, null])
        const subscribed = run.log.flatMap(({ effects }) => effects).filter(({ kind }) => /^(un)?subscribe$/.test(kind))
        assert.notEqual(subscribed.at(-1)?.kind, 'subscribe')
        for (const leg of run.legs.values()) assert.notEqual(leg.status, 'armed')
      })
    }),
    runs,
  )
})

test('4 generations rise; 0 is there exactly where a device enrolled; reports of others change no state', () => {
  fc.assert(
    fc.property(...anyRun, (plan, by, acts) => {
      const run = play(plan, by, acts, (playing, { input, before }) => {
        if (!('generation' in input) || input.generation === before.generation) return
        assert.equal(playing.journey, before)
      })
      assert.deepEqual(
        run.offered,
        [...new Set(run.offered)].toSorted((a, b) => a - b),
      )
      assert.equal(run.offered.includes(0), by === 'device')
    }),
    runs,
  )
})

test('7 the pin stays, and transitions name steps of its plan', () => {
  fc.assert(
    fc.property(...anyRun, (plan, by, acts) => {
      const { log } = play(plan, by, acts)
      for (const { journey } of log) {
        assert.deepEqual([journey.versionNumber, journey.buildId], [plan.versionNumber, plan.buildId])
        if (journey.sectionKey !== null) assert.ok(sections.includes(journey.sectionKey))
        if (journey.stepId !== null) assert.ok(plan.steps[journey.stepId])
      }
    }),
    runs,
  )
})

test('17 no timer fires early, none of a journey on hold, none of another rev', () => {
  fc.assert(
    fc.property(...anyRun, (plan, by, acts) => {
      play(plan, by, acts, (run, { input, before }) => {
        if (input.kind !== 'timer') return
        const state = before.timers[input.timer]
        const mayFire = state?.rev === input.rev && state.dueAt <= run.now && !before.held && before.status !== 'ended'
        assert.equal(run.journey !== before, mayFire)
      })
    }),
    runs,
  )
})

test('20 nothing that clients can send makes a grant', () => {
  const ofClients = (act: Act) =>
    !(act.kind === 'answer' || (act.kind === 'event' && (act as { server: boolean }).server))
  fc.assert(
    fc.property(
      anyPlan,
      fc.constantFrom<Origin>('event', 'segment', 'device'),
      fc.array(anyAct, { maxLength: 30 }),
      (plan, by, acts) => {
        const { log } = play(plan, by, acts.filter(ofClients))
        assert.ok(!log.some(({ effects }) => effects.some(({ kind }) => kind === 'grant')))
      },
    ),
    runs,
  )
})

test('23 at most one conversion, after its basis and inside its window; the revision rises with each change', () => {
  const often = fc.oneof(fc.record({ kind: fc.constantFrom('goal', 'shown'), ago: fc.nat(4 * hourMs) }), anyAct)
  fc.assert(
    fc.property(anyPlan, fc.array(often, { maxLength: 30 }), (plan, acts) => {
      const { log } = play(plan, 'api', acts as Act[])
      let last = log[0]?.journey.conversion
      for (const { journey } of log.slice(1)) {
        const { revision, basis, conversion } = journey.conversion
        const { revision: before = 0, ...known } = last ?? {}
        const isSame = JSON.stringify(known) === JSON.stringify({ ...journey.conversion, revision: undefined })
        assert.equal(revision, isSame ? before : before + 1)
        if (last?.conversion) assert.deepEqual(conversion, last.conversion)
        if (conversion && basis) {
          const passed = conversion.occurredAt - basis.occurredAt
          assert.ok(passed >= 0 && passed <= 2 * hourMs)
        }
        last = journey.conversion
      }
    }),
    runs,
  )
})

test('26 no transition runs more than 64 steps at once', () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 200 }), (length) => {
      const steps = Array.from({ length }, (_, n) => [
        `e${n}`,
        step({ type: 'emit_event', eventName: 'e' }, { next: n + 1 < length ? `e${n + 1}` : null }),
      ])
      const run = new Run(aPlan({ entry: 'e0', steps: Object.fromEntries(steps) }), 'api')
      while (run.open().status === 'waiting') {
        const { rev = 0, dueAt = 0 } = run.open().timers.step ?? {}
        run.now = dueAt
        run.tell({ kind: 'timer', timer: 'step', rev })
      }
      const counts = run.log.map(({ effects }) => effects.filter(({ kind }) => kind === 'append').length)
      assert.ok(counts.every((count) => count <= 64))
      assert.equal(
        counts.reduce((sum, count) => sum + count, 0),
        length,
      )
    }),
    { numRuns: 50 },
  )
})
