import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { raiseRevs } from '../../src/customers/index.ts'
import { must } from '../../src/kernel/assert.ts'
import type { Body } from '../app/answers.ts'
import { anEvent, eventually } from '../app/project.ts'
import { aDraft } from '../harness/a-draft.ts'
import fc from '../harness/random.ts'
import { startService } from '../harness/service.ts'
import { openStage, type Stage } from './stage.ts'

const service = await startService()
after(() => service[Symbol.asyncDispose]())

const keys = ['a', 'b', 'c'] as const
const people = ['ada', 'ben'] as const
const plans = ['free', 'pro'] as const

type Key = (typeof keys)[number]
type Step =
  | { do: 'publish'; key: Key; draft: number }
  | { do: 'pause' | 'resume' | 'unpublish' | 'rollback'; key: Key }
  | { do: 'rotate' }
  | { do: 'plan'; who: string; plan: string }
  | { do: 'grant'; who: string }
  | { do: 'enrol'; who: string; key: Key; daysAgo: number }
  | { do: 'merge' }

const key = fc.constantFrom(...keys)
const who = fc.constantFrom(...people)
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: fc.constant('publish' as const), key, draft: fc.nat(3) }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constantFrom('pause', 'resume', 'unpublish', 'rollback'), key }) },
  fc.record({ do: fc.constant('rotate' as const) }),
  { weight: 3, arbitrary: fc.record({ do: fc.constant('plan' as const), who, plan: fc.constantFrom(...plans) }) },
  fc.record({ do: fc.constant('grant' as const), who }),
  { weight: 3, arbitrary: fc.record({ do: fc.constant('enrol' as const), who, key, daysAgo: fc.nat(10) }) },
  fc.record({ do: fc.constant('merge' as const) }),
)

/** Drafts that differ in who is let in and in what they ask to be told. */
function draftOf(n: number, segmentId: string) {
  const draft = aDraft()
  const isPro = { type: 'User', op: 'eq', key: 'plan', value: { type: 'String', value: 'pro' } }
  const member = { type: 'Segment', op: 'is_member', id: segmentId }
  const ir = (expr: object) => ({ ir_version: 1, expr })
  const entries = [
    { trigger: { type: 'event', eventName: 'e' }, frequency: { type: 'one_time' } },
    {
      trigger: { type: 'event', eventName: 'e', condition: ir({ type: 'Or', args: [isPro, member] }) },
      frequency: { type: 'once_per_window', window: { amount: 7, unit: 'day' } },
    },
    { trigger: { type: 'event', eventName: 'e' }, frequency: { type: 'every_match' }, eligibility: ir(member) },
    { trigger: { type: 'segment_enter', segmentId }, frequency: { type: 'every_match' } },
  ]
  draft.priority = n
  draft.policy = { ...draft.policy, entry: must(entries[n], 'there are four') }
  return draft
}

interface World {
  stage: Stage
  segmentId: string
  versions: Map<string, string[]>
}

async function openWorld(): Promise<World> {
  const stage = await openStage(service)
  const { project } = stage
  await project.feature('exports')
  const where = { property: { key: 'plan', op: 'eq', value: 'pro' } }
  const segment = { project_id: project.id, name: 'Pro', definition: { version: 1, where } }
  const { id: segmentId } = await project.post('/segments', segment)
  await eventually(async () => (await project.get(`/segments/${segmentId}`)).status === 'ready', 30_000)
  for (const person of people) await project.customer(person)
  return { stage, segmentId, versions: new Map() }
}

async function apply(world: World, one: Step): Promise<void> {
  const { stage, segmentId, versions } = world
  const { project } = stage
  switch (one.do) {
    case 'publish': {
      const { id } = await stage.publish(one.key, draftOf(one.draft, segmentId))
      versions.set(one.key, [...(versions.get(one.key) ?? []), id])
      return
    }
    case 'rollback': {
      const [first] = versions.get(one.key) ?? []
      if (first) await project.post(`/experiences/${one.key}/versions/${first}/activate?project_id=${project.id}`, {})
      return
    }
    case 'pause':
    case 'resume':
    case 'unpublish':
      if (versions.has(one.key)) await stage.change(one.key, one.do)
      return
    case 'rotate':
      await stage.rotate()
      return
    case 'plan':
      await stage.app.post('/event', anEvent(one.who, { properties: { $set: { plan: one.plan } } }))
      await applied(stage)
      return
    case 'grant':
      await project.grant(one.who, { feature: 'exports', allowance: 3 })
      return
    case 'enrol':
      await enrol(stage, one)
      return
    case 'merge':
      await stage.app.post('/event', anEvent('ada', { event: '$identify', $anon_distinct_id: 'ben' }))
      await applied(stage)
  }
}

/** As a journey counts, in one transaction with the customer's number. */
async function enrol({ project }: Stage, { who: distinctId, key: experience, daysAgo }: Step & { do: 'enrol' }) {
  const scopeId = await project.scopeId()
  const at = Date.now() - daysAgo * 24 * 3600_000
  await service.pool.transaction(async (tx) => {
    const [row] = await tx.query<{ experience: number; customer: string }>(
      `select e.id as experience, a.customer_id as customer
       from experience e, customer_alias a
       where e.scope_id = $1 and e.key = $2 and a.scope_id = $1 and a.distinct_id = $3`,
      [scopeId, experience, distinctId],
    )
    if (!row) return
    await tx.query(
      `insert into experience_enrolment as e (scope_id, experience_id, customer_id, count, last_enrolled_at_ms, times)
       values ($1, $2, $3, 1, $4, array[$4::bigint])
       on conflict (scope_id, experience_id, customer_id) do update set count = e.count + 1, times = e.times || excluded.times`,
      [scopeId, row.experience, row.customer, at],
    )
    await raiseRevs(tx, [{ scopeId, customerId: row.customer }])
  })
}

/** The lane has applied what was sent, segments included. */
async function applied({ app, project }: Stage): Promise<void> {
  const event = `seen-${crypto.randomUUID()}`
  const scopeId = await project.scopeId()
  await app.post('/event', anEvent('marker', { event }))
  await eventually(async () => {
    const rows = await service.pool.query('select from event where scope_id = $1 and event = $2', [scopeId, event])
    return rows.length > 0
  }, 30_000)
}

const observers = [...people, 'stranger'].flatMap((person) => [null, 'de-AT'].map((locale) => ({ person, locale })))

test('whatever happens: a 304 exactly where the whole profile is the same, and explaining agrees', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 4, maxLength: 14 }), async (steps) => {
      const world = await openWorld()
      const { stage } = world
      const sent = new Map<string, string>()
      const bytesOf = new Map<string, string>()
      const tagsOf = new Map<string, string>()
      for (const one of steps) {
        await apply(world, one)
        for (const { person, locale } of observers) {
          const about = `${person} ${locale}`
          const before = sent.get(about)
          const ask = (tag: string) =>
            stage.app.post('/profile', { distinct_id: person, locale }, { 'if-none-match': tag })
          // Asked with the old tag first: what is remembered may only say what assembling would.
          const conditional = before === undefined ? undefined : await ask(before)
          const { body, tag, bytes } = await stage.profile(person, { locale })
          assert.equal(conditional?.status ?? 200, before === tag ? 304 : 200, `${about} after ${JSON.stringify(one)}`)
          assert.equal((await ask(tag)).status, 304)
          const text = bytes.toString()
          assert.equal(bytesOf.get(tag) ?? text, text)
          assert.equal(tagsOf.get(text) ?? tag, tag)
          bytesOf.set(tag, text)
          tagsOf.set(text, tag)
          sent.set(about, tag)
          if (person !== 'stranger') await agrees(stage, person, locale, { body, tag })
        }
      }
    }),
    { numRuns: 6, endOnFailure: true },
  )
})

async function agrees(stage: Stage, person: string, locale: string | null, { body, tag }: { body: Body; tag: string }) {
  const told = await stage.explain(person, locale === null ? '' : `&locale=${locale}`)
  assert.deepEqual([told.etag, told.profile], [tag, body])
  const armed = new Set(body.armedLegs.map(({ reference }: Body) => reference.experienceId))
  for (const one of told.experiences) {
    assert.equal(one.armed, armed.has(one.experience_id))
    assert.equal(one.reason === null, one.armed)
    assert.deepEqual(one.binding, one.armed ? { type: 'new' } : null)
    assert.equal(one.checks.at(-1).passed, one.armed)
  }
}
