import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, describe, test } from 'node:test'
import {
  assign,
  countExposures,
  experimentEraser,
  experimentParticipant,
  holdOut,
  peekAssignments,
  recordExposures,
  type SeenVariant,
} from '../../src/experiences/index.ts'
import { must } from '../../src/kernel/assert.ts'
import { dayMs, experimentPageUnits } from '../../src/kernel/limits.ts'
import type { Scope } from '../../src/tenancy/index.ts'
import type { Body } from '../app/answers.ts'
import { anEvent, eventually, openProject } from '../app/project.ts'
import fc from '../harness/random.ts'
import { startService } from '../harness/service.ts'

const service = await startService()
after(() => service[Symbol.asyncDispose]())
const { pool } = service
const project = await openProject(service)
const app = await project.app()
const [row] = await pool.query<Scope>(
  `select s.id as "scopeId", p.workspace_id as "workspaceId", p.id as "projectId", s.environment
   from scope s
   join project p on p.id = s.project_id
   where p.id = $1
     and s.environment = 'test'`,
  [project.id],
)
const scope = must(row, 'the project has its scopes')

const half = [
  { id: 'a', weight: 0.5, is_holdout: false },
  { id: 'b', weight: 0.5, is_holdout: false },
]
let count = 0

async function running(more: object = {}): Promise<Body> {
  const body = { project_id: project.id, key: `x${count++}`, variants: half, ...more }
  const { id } = await project.post('/experiments', body)
  return project.post(`/experiments/${id}/start`, {})
}

const now = () => Date.now()
const given = (experimentId: string, customers: string[], atMs = now()) =>
  pool.transaction((tx) =>
    assign(
      tx,
      scope,
      customers.map((customerId) => ({ experimentId, customerId })),
      atMs,
    ),
  )

async function variantOf(experimentId: string, customerId: string): Promise<string | null> {
  const assignments = await given(experimentId, [customerId])
  return assignments.get(customerId)?.[experimentId]?.variantId ?? null
}

const uuidOf = (customerId: string) => customerId.replace('cus_', '')
const exposed = (seen: Partial<SeenVariant> & Pick<SeenVariant, 'experiment' | 'customerId' | 'variantId'>) =>
  pool.transaction((tx) =>
    recordExposures(tx, scope, [{ isHoldout: false, fallback: false, atMs: now(), eventUuid: null, ...seen }]),
  )
const resultsOf = (id: string, query = '') => project.get(`/experiments/${id}/results${query}`)
const unitsIn = ({ variants }: Body) => Object.fromEntries(variants.map(({ id, units }: Body) => [id, units]))
const rowsOf = (table: string, customerId: string) =>
  pool.query<Record<string, unknown>>(`select * from ${table} where scope_id = $1 and customer_id = $2`, [
    scope.scopeId,
    customerId,
  ])
const revOf = async (customerId: string) => {
  const rows = await pool.query<{ rev: bigint }>(
    'select rev from customer_rev where scope_id = $1 and customer_id = $2',
    [scope.scopeId, customerId],
  )
  return rows[0]?.rev ?? 0n
}

describe('assignment', () => {
  test('is given once, whoever asks at the same time, and counts as a change of the profile', async () => {
    const { id } = await running()
    const customers = Array.from({ length: 20 }, () => randomUUID())
    const answers = await Promise.all(Array.from({ length: 8 }, () => given(id, customers)))
    for (const answer of answers) assert.deepEqual(answer, answers[0])
    for (const customerId of customers) {
      assert.equal((await rowsOf('experiment_assignment', customerId)).length, 1)
      assert.equal(await revOf(customerId), 1n)
    }
  })

  test('is what is stored, for whoever decided otherwise while somebody else was storing it', async () => {
    const { id } = await running()
    const customer = randomUUID()
    const { assignments } = await peekAssignments(pool, scope, [{ experimentId: id, customerId: customer }])
    const other = assignments.get(customer)?.[id]?.variantId === 'a' ? 'b' : 'a'
    const told = await pool.transaction(async (tx) => {
      await tx.query(
        `insert into experiment_assignment
           (scope_id, experiment_id, phase, customer_id, variant_id, is_holdout, reason, weight_period, assigned_at_ms)
         select $1, id, 1, $2, $3, false, 'hash', 0, 1
         from experiment
         where public_id = $4`,
        [scope.scopeId, customer, other, id],
      )
      const deciding = variantOf(id, customer)
      const waits = `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`
      await eventually(async () => (await tx.query(waits)).length > 0, 20_000)
      return { deciding }
    })
    assert.equal(await told.deciding, other)
  })

  test('is null for an experiment that is not there, in draft, or archived', async () => {
    const { id } = await project.post('/experiments', { project_id: project.id, key: 'draft', variants: half })
    const customer = randomUUID()
    assert.equal(await variantOf(id, customer), null)
    await project.post(`/experiments/${id}/archive`, {})
    assert.equal(await variantOf(id, customer), null)
    assert.equal(await variantOf('xp_none', customer), null)
    assert.deepEqual(await rowsOf('experiment_assignment', customer), [])
  })

  test('stays through a pause and new weights; nobody new gets one meanwhile', async () => {
    const { id } = await running()
    const [old, fresh] = [randomUUID(), randomUUID()]
    const variant = must(await variantOf(id, old), 'everybody takes part')
    await project.post(`/experiments/${id}/pause`, {})
    assert.deepEqual([await variantOf(id, old), await variantOf(id, fresh)], [variant, null])
    await project.post(`/experiments/${id}/resume`, {})
    const other = half.map((one) => ({ ...one, weight: one.id === variant ? 0 : 1 }))
    await project.patch(`/experiments/${id}`, { variants: other })
    assert.equal(await variantOf(id, old), variant)
    assert.notEqual(await variantOf(id, fresh), variant)
    const [stored] = await rowsOf('experiment_assignment', fresh)
    assert.equal(stored?.weight_period, 1)
  })

  test('is dealt anew in a new phase, and is the winner for everybody in the end', async () => {
    const { id } = await running()
    const customers = Array.from({ length: 12 }, () => randomUUID())
    await given(id, customers)
    await project.post(`/experiments/${id}/new_phase`, { variants: [half[0], { ...half[1], id: 'c' }] })
    for (const [, each] of await given(id, customers)) assert.notEqual(each[id]?.variantId, 'b')
    await project.post(`/experiments/${id}/conclude`, { winner_variant_id: 'c' })
    for (const [, each] of await given(id, [...customers, randomUUID()])) {
      assert.deepEqual(each[id], { variantId: 'c', isHoldout: false })
    }
    const listed = await project.get(`/experiments/${id}/assignments?limit=100`)
    assert.deepEqual(
      listed.data.map(({ phase }: Body) => phase),
      [...Array(12).fill(1), ...Array(12).fill(2)],
    )
  })

  test('asks the audience', async () => {
    const member = await project.post('/customers', {
      ...{ project_id: project.id, distinct_id: 'member', properties: { plan: 'pro' } },
    })
    const pro = { version: 1, where: { property: { key: 'plan', op: 'eq', value: 'pro' } } }
    const segment = await project.post('/segments', { project_id: project.id, name: 'Pro', definition: pro })
    const { id } = await running({ audience_segment_id: segment.id })
    await eventually(async () => (await project.get(`/segments/${segment.id}`)).member_count === 1, 20_000)
    assert.ok(await variantOf(id, uuidOf(member.id)))
    assert.equal(await variantOf(id, randomUUID()), null)
  })

  test('only looking writes nothing', async () => {
    const { id } = await running()
    const customerId = randomUUID()
    const { assignments, fresh } = await peekAssignments(pool, scope, [{ experimentId: id, customerId }])
    assert.equal(fresh.length, 1)
    assert.deepEqual(await rowsOf('experiment_assignment', customerId), [])
    assert.deepEqual(await given(id, [customerId]), assignments)
  })

  test('of a holdout keeps some out, and counts both sides', async () => {
    const variants = [
      { id: 'in', weight: 0.5, is_holdout: false },
      { id: 'out', weight: 0.5, is_holdout: true },
    ]
    const { id } = await running({ kind: 'holdout', variants })
    const questions = Array.from({ length: 40 }, () => ({ experimentId: id, customerId: randomUUID() }))
    const held = await pool.transaction((tx) => holdOut(tx, scope, questions, now()))
    const again = await pool.transaction((tx) => holdOut(tx, scope, questions, now() + 1000))
    assert.deepEqual(again, held)
    const out = held.filter(Boolean).length
    assert.ok(out > 0 && out < 40)
    assert.deepEqual(unitsIn(await resultsOf(id)), { in: 40 - out, out })
  })
})

describe('within a phase nobody is moved', () => {
  const share = fc.integer({ min: 0, max: 10 }).map((tenths) => tenths / 10)
  const step = fc.oneof(
    fc.record({ do: fc.constantFrom('pause', 'resume', 'new_phase') }),
    fc.record({ do: fc.constant('coverage'), share }),
    fc.record({ do: fc.constant('weights'), share }),
    fc.record({ do: fc.constant('ask'), share: fc.constant(0) }),
  )

  test('whatever is changed of what runs, until it is concluded', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 10 }), async (steps) => {
        const { id } = await running({ coverage: 0.3 })
        const customers = Array.from({ length: 6 }, () => randomUUID())
        let state = { phase: 1, coverage: 0.3, status: 'running' }
        let told = new Map<string, string>()
        const ask = async () => {
          for (const [customerId, each] of await given(id, customers)) {
            const variant = each[id]?.variantId
            const before = told.get(customerId)
            if (before !== undefined) assert.equal(variant, before)
            else if (variant !== undefined) {
              assert.equal(state.status, 'running')
              told.set(customerId, variant)
            }
          }
        }
        for (const one of steps) {
          await ask()
          if (one.do === 'pause' || one.do === 'resume') {
            const [from, to] = one.do === 'pause' ? ['running', 'paused'] : ['paused', 'running']
            const { status } = await service.workspace('POST', `/experiments/${id}/${one.do}`, { body: {} })
            assert.equal(status, state.status === from ? 200 : 409)
            if (state.status === from) state = { ...state, status: to ?? '' }
          } else if (one.do === 'new_phase') {
            await project.post(`/experiments/${id}/new_phase`, {})
            told = new Map()
          } else if ('share' in one && one.do === 'coverage') {
            const body = { coverage: one.share }
            const { status } = await service.workspace('PATCH', `/experiments/${id}`, { body })
            assert.equal(status, one.share >= state.coverage ? 200 : 409)
            if (status === 200) state = { ...state, coverage: one.share }
          } else if ('share' in one && one.do === 'weights') {
            const weights = [one.share, 1 - one.share]
            await project.patch(`/experiments/${id}`, {
              variants: half.map((variant, i) => ({ ...variant, weight: weights[i] })),
            })
          }
        }
        await ask()
        await project.post(`/experiments/${id}/conclude`, { winner_variant_id: 'b' })
        for (const [, each] of await given(id, customers)) assert.equal(each[id]?.variantId, 'b')
      }),
      { numRuns: 12 },
    )
  })
})

describe('exposure', () => {
  test('reported by a device counts once, with what follows within the window', async () => {
    const metrics = [{ event_name: 'paid', window_ms: dayMs }]
    const experiment = await running({ metrics })
    const { id } = experiment
    const names = ['e0', 'e1', 'e2', 'e3', 'e4', 'e5']
    const customers = await Promise.all(names.map((name) => project.customer(name)))
    const assignments = await given(id, customers.map(uuidOf))
    const shown = (name: string, at: number, more: object = {}) => {
      const customerId = uuidOf(customers[names.indexOf(name)] ?? '')
      const { variantId, isHoldout } = must(assignments.get(customerId)?.[id], 'everybody takes part')
      return anEvent(name, {
        event: '$experiment_exposure',
        timestamp: new Date(at).toISOString(),
        properties: {
          ...{ experiment_key: id, variant_key: variantId, is_holdout: isHoldout, assignment_source: 'profile' },
          ...more,
        },
      })
    }
    const paid = (name: string, at: number) => anEvent(name, { event: 'paid', timestamp: new Date(at).toISOString() })
    const at = now()
    const batch = [
      ...names.slice(0, 4).flatMap((name) => [shown(name, at), shown(name, at + 1)]),
      shown('e4', at, { assignment_source: 'fallback' }),
      shown('e5', at, { variant_key: 'another' }),
      paid('e0', at + 10),
      paid('e0', at + 20),
      paid('e1', at - 60_000),
      paid('e4', at + 10),
    ]
    assert.equal((await app.postGzip('/batch', { batch })).status, 200)
    const result = await eventually(async () => {
      const body = await resultsOf(id)
      const total = body.variants.reduce((sum: number, { units }: Body) => sum + units, 0)
      const { fallback, mismatch } = body.excluded
      const converted = body.variants.some(({ conversions }: Body) => conversions > 0)
      return total === 4 && fallback === 1 && mismatch === 1 && converted ? body : undefined
    }, 20_000)
    // Only the payment after the exposure, and only of who was counted.
    const winner = assignments.get(uuidOf(customers[0] ?? ''))?.[id]?.variantId
    for (const { id: variant, conversions } of result.variants) assert.equal(conversions, variant === winner ? 1 : 0)
    assert.deepEqual(result.metric, metrics[0])
    const listed = await project.get(`/experiments/${id}/assignments?customer_id=${customers[0]}`)
    assert.equal(listed.data.length, 1)
    assert.ok(listed.data[0].first_exposed_at)
  })

  test('belongs to the phase that ran when it happened; after the last one to none', async () => {
    const { id } = await running()
    const customerId = randomUUID()
    const first = must(await variantOf(id, customerId), 'everybody takes part')
    const before = now()
    await new Promise((resolve) => setTimeout(resolve, 5))
    await project.post(`/experiments/${id}/new_phase`, {})
    await exposed({ experiment: id, customerId, variantId: first, atMs: before })
    assert.deepEqual(
      [unitsIn(await resultsOf(id, '?phase=1')), unitsIn(await resultsOf(id))],
      [
        { a: 0, b: 0, [first]: 1 },
        { a: 0, b: 0 },
      ],
    )
    await project.post(`/experiments/${id}/conclude`, { winner_variant_id: 'a' })
    await exposed({ experiment: id, customerId: randomUUID(), variantId: 'a', atMs: now() + 1000 })
    assert.deepEqual(unitsIn(await resultsOf(id)), { a: 0, b: 0 })
  })

  test('of an import, without words, or of what never ran is no exposure', async () => {
    const { id } = await running()
    const customerId = randomUUID()
    const variantId = must(await variantOf(id, customerId), 'everybody takes part')
    const properties = { experiment_key: id, variant_key: variantId, is_holdout: false, assignment_source: 'profile' }
    const event = {
      ...{ pos: 1n, uuid: randomUUID(), name: '$experiment_exposure', customerId, distinctId: 'x', appId: null },
      ...{ at: now(), receivedAt: now(), trust: 'device' as const, live: true, recognised: true, originClaim: null },
    }
    const payload = { event: event.name, distinct_id: 'x', uuid: event.uuid, timestamp: '', trust: 'device' as const }
    const seen = (more: object, over: object = {}) => ({
      ...{ ...event, ...over, payload: { ...payload, properties: { ...properties, ...more } } },
    })
    const strange = [
      seen({}, { live: false }),
      seen({ experiment_key: 5 }),
      seen({ variant_key: null }),
      seen({ assignment_source: 'guess' }),
      seen({ experiment_key: 'xp_none' }),
      seen({}, { name: 'paid' }),
    ]
    await pool.transaction((tx) => countExposures(tx, scope, strange))
    assert.deepEqual(await rowsOf('experiment_exposure', customerId), [])
    await pool.transaction((tx) => countExposures(tx, scope, [...strange, seen({})]))
    assert.equal((await rowsOf('experiment_exposure', customerId)).length, 1)
  })

  test('at most one counts in a phase, the earliest, in whatever order and portions reports come', async () => {
    const { id } = await running()
    const report = fc.record({
      place: fc.integer({ min: 0, max: 2 }),
      after: fc.integer({ min: 0, max: 9 }),
      kind: fc.constantFrom('profile', 'fallback', 'mismatch'),
    })
    await fc.assert(
      fc.asyncProperty(fc.array(report, { maxLength: 12 }), fc.integer({ min: 1, max: 5 }), async (reports, size) => {
        const customers = [randomUUID(), randomUUID(), randomUUID()]
        const base = now()
        const assignments = await given(id, customers, base)
        const seen = reports.map(({ place, after: ms, kind }): SeenVariant => {
          const customerId = customers[place] ?? ''
          const own = must(assignments.get(customerId)?.[id], 'everybody takes part')
          return {
            ...{
              experiment: id,
              customerId,
              ...own,
              fallback: kind === 'fallback',
              atMs: base + ms,
              eventUuid: randomUUID(),
            },
            ...(kind === 'mismatch' && { variantId: 'another' }),
          }
        })
        for (let i = 0; i < seen.length; i += size) {
          await pool.transaction((tx) => recordExposures(tx, scope, seen.slice(i, i + size)))
        }
        await pool.transaction((tx) => recordExposures(tx, scope, seen))
        for (const [place, customerId] of customers.entries()) {
          const [stored] = await rowsOf('experiment_exposure', customerId)
          const first = (kind: string) => {
            const times = reports
              .filter((one) => one.place === place && one.kind === kind)
              .map((one) => base + one.after)
            return times.length === 0 ? null : BigInt(Math.min(...times))
          }
          const times = [stored?.exposed_at_ms ?? null, stored?.fallback_at_ms ?? null, stored?.mismatch_at_ms ?? null]
          assert.deepEqual(times, [first('profile'), first('fallback'), first('mismatch')])
        }
      }),
      { numRuns: 25 },
    )
  })
})

describe('results', () => {
  /** As many units of each variant, so many of which did it. */
  async function filled(more: object, each: [variant: string, units: number, conversions: number][]): Promise<string> {
    const experiment = await running({ metrics: [{ event_name: `did ${count}`, window_ms: dayMs }], ...more })
    const found = await pool.query<{ experimentId: number }>(
      'select id as "experimentId" from experiment where public_id = $1',
      [experiment.id],
    )
    const { experimentId } = must(found[0], 'it was made')
    const [{ event_name: name }] = experiment.metrics
    for (const [variant, units, conversions] of each) {
      await pool.query(
        `with unit as (
           select gen_random_uuid() as id, n
           from generate_series(1, $4::int) as n
         ), assigned as (
           insert into experiment_assignment
             (scope_id, experiment_id, phase, customer_id, variant_id, is_holdout, reason, weight_period, assigned_at_ms)
           select $1, $2, 1, id, $3, false, 'hash', 0, $5
           from unit
         ), seen as (
           insert into experiment_exposure (scope_id, experiment_id, phase, customer_id, variant_id, exposed_at_ms)
           select $1, $2, 1, id, $3, $5
           from unit
         )
         insert into event (scope_id, pos, uuid, customer_id, distinct_id, event, ts, received_at, props, trust, recognised,
           historical)
         select $1, 1000000 + $8 + n, gen_random_uuid(), id, 'u', $6, now(), now(), '{}', 0, true, false
         from unit
         where n <= $7`,
        [scope.scopeId, experimentId, variant, units, now() - 1000, name, conversions, count++ * 100_000],
      )
    }
    return experiment.id
  }

  test('of more units than one statement looks at add up, and say which variant is better', async () => {
    const id = await filled({}, [
      ['a', experimentPageUnits + 1, 500],
      ['b', experimentPageUnits, 650],
    ])
    const { variants, srm, verdict } = await resultsOf(id)
    const [a, b] = variants
    assert.deepEqual(
      [a.units, a.conversions, b.units, b.conversions],
      [experimentPageUnits + 1, 500, experimentPageUnits, 650],
    )
    assert.equal(srm.status, 'passed')
    assert.ok(Math.abs(b.diff - (650 / experimentPageUnits - 500 / (experimentPageUnits + 1))) < 1e-12)
    assert.ok(b.sequential_interval[0] > 0 && b.sequential_interval[0] < b.interval[0])
    assert.deepEqual(verdict, { status: 'difference', best_variant_id: 'b' })
  })

  test('of too many units of one variant have no verdict, however clear they look', async () => {
    const id = await filled({}, [
      ['a', 600, 10],
      ['b', 400, 390],
    ])
    const { srm, verdict, variants } = await resultsOf(id)
    // 100^2 / 500, twice.
    assert.deepEqual([srm.chi2, srm.df, srm.status, verdict], [40, 1, 'failed', null])
    assert.ok(variants[1].sequential_interval[0] > 0)
  })

  test('that could be chance are inconclusive', async () => {
    const id = await filled({}, [
      ['a', 1000, 100],
      ['b', 1000, 130],
    ])
    const { verdict, variants } = await resultsOf(id)
    // One look at a fixed time would have called it.
    assert.ok(variants[1].p < 0.05 && variants[1].interval[0] > 0)
    assert.deepEqual(verdict, { status: 'inconclusive', best_variant_id: null })
  })

  test('where all others are worse, the control is best', async () => {
    const id = await filled({}, [
      ['a', 2000, 500],
      ['b', 2000, 100],
    ])
    assert.deepEqual((await resultsOf(id)).verdict, { status: 'difference', best_variant_id: 'a' })
  })
})

describe('customers that merge', () => {
  const merged = (source: string, target: string) =>
    pool.transaction((tx) =>
      experimentParticipant.merge(tx, scope, [{ sourceCustomerId: source, targetCustomerId: target, position: 1n }]),
    )

  /** Two customers with the same variant, or with different ones. */
  async function pair(id: string, alike: boolean): Promise<[string, string, string]> {
    const target = randomUUID()
    const variant = must(await variantOf(id, target), 'everybody takes part')
    for (;;) {
      const source = randomUUID()
      if (((await variantOf(id, source)) === variant) === alike) return [source, target, variant]
    }
  }

  test('the target keeps its variant; different ones are a crossover and are not counted', async () => {
    const { id } = await running()
    const [source, target, variant] = await pair(id, false)
    await exposed({ experiment: id, customerId: target, variantId: variant })
    await merged(source, target)
    assert.equal(await variantOf(id, target), variant)
    const { variants, excluded } = await resultsOf(id)
    assert.deepEqual([unitsIn({ variants }), excluded.crossover], [{ a: 0, b: 0 }, 1])
    const { data } = await project.get(`/experiments/${id}/assignments?limit=100`)
    const crossed = data.filter(({ crossover }: Body) => crossover)
    assert.deepEqual(
      crossed.map(({ customer_id }: Body) => customer_id),
      [`cus_${target}`],
    )
  })

  test('alike, the earliest exposure stays, once', async () => {
    const { id } = await running()
    const [source, target, variant] = await pair(id, true)
    const at = now()
    await exposed({ experiment: id, customerId: source, variantId: variant, atMs: at + 1000 })
    await exposed({ experiment: id, customerId: target, variantId: variant, atMs: at + 2000 })
    await merged(source, target)
    assert.deepEqual(
      (await rowsOf('experiment_exposure', target)).map((one) => one.exposed_at_ms),
      [BigInt(at + 1000)],
    )
    assert.deepEqual(unitsIn(await resultsOf(id)), { a: 0, b: 0, [variant]: 1 })
    // Once more, as after a crash: there is nothing left to move.
    await merged(source, target)
    assert.deepEqual(unitsIn(await resultsOf(id)), { a: 0, b: 0, [variant]: 1 })
  })

  test('who has none inherits, and a split gives the source back what it had', async () => {
    const { id } = await running()
    const [source, target] = [randomUUID(), randomUUID()]
    const variant = must(await variantOf(id, source), 'everybody takes part')
    await exposed({ experiment: id, customerId: source, variantId: variant })
    const [moved = null] = await merged(source, target)
    assert.deepEqual(
      (await rowsOf('experiment_assignment', target)).map((one) => [one.variant_id, one.reason]),
      [[variant, 'merged']],
    )
    assert.deepEqual(await rowsOf('experiment_assignment', source), [])
    const split = { sourceCustomerId: source, targetCustomerId: target, position: 2n, mergedAt: now() }
    await pool.transaction((tx) => experimentParticipant.split(tx, scope, { ...split, how: 'join', moved }))
    // The target was shown it: it keeps it. The exposure is the source's alone again.
    assert.deepEqual([await variantOf(id, source), await variantOf(id, target)], [variant, variant])
    assert.deepEqual(unitsIn(await resultsOf(id)), { a: 0, b: 0, [variant]: 1 })
    assert.deepEqual(await rowsOf('experiment_exposure', target), [])
  })

  test('by identify, in the lane', async () => {
    const { id } = await running()
    const [anon, ada] = [uuidOf(await project.customer('anon')), uuidOf(await project.customer('ada'))]
    const variant = must(await variantOf(id, anon), 'everybody takes part')
    const properties = { $anon_distinct_id: 'anon' }
    await app.postGzip('/batch', { batch: [anEvent('ada', { event: '$identify', properties })] })
    await eventually(async () => (await rowsOf('experiment_assignment', ada)).length === 1, 20_000)
    assert.equal(await variantOf(id, ada), variant)
  })
})

test('of a deleted customer nothing is left', async () => {
  const { id } = await running()
  const customerId = randomUUID()
  const variantId = must(await variantOf(id, customerId), 'everybody takes part')
  await exposed({ experiment: id, customerId, variantId })
  const whom = { customerIds: [customerId], distinctIds: [], mentions: [] }
  assert.equal(await pool.transaction((tx) => experimentEraser.erase(tx, scope, whom)), true)
  assert.deepEqual(await rowsOf('experiment_assignment', customerId), [])
  assert.deepEqual(await rowsOf('experiment_exposure', customerId), [])
})

test('events of records that were merged count for the customer they became', async () => {
  const { id } = await running({ metrics: [{ event_name: 'bought', window_ms: dayMs }] })
  const [device, user] = [uuidOf(await project.customer('phone')), uuidOf(await project.customer('grace'))]
  const variantId = must(await variantOf(id, user), 'everybody takes part')
  const at = now()
  await exposed({ experiment: id, customerId: user, variantId, atMs: at })
  const bought = anEvent('phone', { event: 'bought', timestamp: new Date(at + 5).toISOString() })
  const identify = anEvent('grace', { event: '$identify', properties: { $anon_distinct_id: 'phone' } })
  await app.postGzip('/batch', { batch: [bought, identify] })
  await eventually(async () => {
    const { variants } = await resultsOf(id)
    return variants.some(({ conversions }: Body) => conversions === 1)
  }, 20_000)
  assert.deepEqual(await rowsOf('experiment_exposure', device), [])
})
