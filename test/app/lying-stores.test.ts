import assert from 'node:assert/strict'
import { after, afterEach, describe, test } from 'node:test'
import { must } from '../../src/kernel/assert.ts'
import { storeAnswerBytesMax, storeVerdictMsMax } from '../../src/kernel/limits.ts'
import fc from '../harness/random.ts'
import { startService } from '../harness/service.ts'
import type { Answer, Body } from './answers.ts'
import { openCards } from './card-world.ts'
import { openPlay } from './play-world.ts'
import { eventually } from './project.ts'
import { openStore } from './store-world.ts'

/** Stores that say what they never would: each answer ends in a documented one, and nobody else is touched. */
const service = await startService()
const apple = await openStore(service)
const play = await openPlay(service)
const cards = await openCards(service)
after(async () => {
  for (const world of [apple, play, cards]) await world[Symbol.asyncDispose]()
  await service[Symbol.asyncDispose]()
})

afterEach(() => {
  play.store.fault = undefined
  cards.store.fault = undefined
  cards.store.bend = undefined
})

/** One value of an answer, found by a walk through it, that is another one or missing; or the whole, cut short. */
interface Lie {
  walk: number[]
  how: 'replace' | 'drop' | 'cut'
  value: unknown
}

const value = fc.oneof(
  fc.jsonValue(),
  fc.string({ unit: 'binary' }),
  fc.double(),
  fc.constantFrom('', '\0', '\ud800', '__proto__', -1, 0, 0.5, 1e300, 2 ** 53, 253_402_300_800, {}, [], true),
  fc.constantFrom(
    'javascript:alert(1)',
    'http://evil.example.com/',
    'active',
    'canceled',
    'in_other',
    'x'.repeat(5000),
  ),
)
const lie: fc.Arbitrary<Lie> = fc.record({
  walk: fc.array(fc.nat(20), { minLength: 1, maxLength: 6 }),
  how: fc.oneof(
    { weight: 8, arbitrary: fc.constant<'replace'>('replace') },
    { weight: 3, arbitrary: fc.constant<'drop'>('drop') },
    { weight: 1, arbitrary: fc.constant<'cut'>('cut') },
  ),
  value,
})

function lied(truth: unknown, { walk, how, value: instead }: Lie): unknown {
  const written = JSON.stringify(truth)
  if (how === 'cut') return written.slice(0, must(walk[0], 'one step at least') * Math.ceil(written.length / 21))
  const whole: unknown = JSON.parse(written)
  let at = whole
  for (const [n, step] of walk.entries()) {
    if (typeof at !== 'object' || at === null || Object.keys(at).length === 0) break
    const parent = at as Record<string, unknown> // or a list, whose keys are its numbers
    const name = must(Object.keys(parent)[step % Object.keys(parent).length], 'it has some')
    const next = parent[name]
    if (n < walk.length - 1 && typeof next === 'object' && next !== null) {
      at = next
      continue
    }
    if (how === 'drop') delete parent[name]
    else parent[name] = instead
    break
  }
  return whole
}

const statusOf = ({ originalTransactionId: id }: Record<string, unknown>) => `/inApps/v1/subscriptions/${String(id)}`

let people = 0
const someone = () => `lied-to-${++people}`

/** All that is kept of a customer with a purchase that no lie is about. */
const bystander = await openPlay(service)
assert.equal((await bystander.bring('bystander', bystander.subscribe('bystander'))).status, 200)
after(() => bystander[Symbol.asyncDispose]())
const tables = ['store_lineage', 'store_transaction', 'store_period', 'ledger_grant', 'account', 'customer']
const kept = () =>
  Promise.all(
    tables.map((table) =>
      service.pool.query(
        `select t::text as row
         from ${table} t
         where scope_id in (select id from scope where project_id = $1)
         order by 1`,
        [bystander.project.id],
      ),
    ),
  )
const before = await kept()

const counts = new Map<number, number>()

async function assertAnswered(answer: Answer, allowed: number[], hasAccess: () => Promise<boolean>): Promise<void> {
  assert.ok(allowed.includes(answer.status), `${answer.status} ${JSON.stringify(answer.body)}`)
  counts.set(answer.status, (counts.get(answer.status) ?? 0) + 1)
  if (answer.status !== 200) assert.equal(await hasAccess(), false, JSON.stringify(answer.body))
}

const runs = Number(process.env.LIE_RUNS ?? 25)

describe('any lie', () => {
  test('of the App Store', async () => {
    const claim = fc.option(fc.tuple(fc.constantFrom('bundleId', 'productId', 'originalTransactionId', 'type'), value))
    await fc.assert(
      fc.asyncProperty(lie, claim, async (told, wrong) => {
        const who = someone()
        const bought = apple.subscription(who)
        const claimed = { ...bought, ...(wrong ? { [wrong[0]]: wrong[1] } : {}) }
        apple.store.tell(claimed, 1, { autoRenewStatus: 1 })
        const answer = apple.store.answers.get(statusOf(claimed))
        assert.ok(typeof answer === 'object')
        // A changed claim is a lie already.
        const body = wrong === null ? lied(answer.body, told) : answer.body
        apple.store.answers.set(statusOf(bought), { status: 200, body })
        const hasAccess = async () => (await apple.entitled(who, 'pro')).allowed
        await assertAnswered(await apple.bring(who, bought), [200, 400, 409, 503], hasAccess)
      }),
      { numRuns: runs },
    )
  })

  test('of Google Play', async () => {
    await fc.assert(
      fc.asyncProperty(lie, fc.boolean(), async (told, isSubscription) => {
        const who = someone()
        const token = isSubscription ? play.subscribe(who) : play.buy(who, 'lifetime')
        const { body } = must(play.store.sold.get(token), 'it was sold')
        const said = lied({ ...body, acknowledgementState: 'ACKNOWLEDGEMENT_STATE_PENDING' }, told)
        const text = typeof said === 'string' ? said : JSON.stringify(said)
        play.store.fault = (call) => (call.startsWith('GET') ? { status: 200, body: text } : undefined)
        const answer = await play.bring(who, token)
        play.store.fault = undefined
        await assertAnswered(answer, [200, 400, 409, 429, 503], () => play.entitled(who))
      }),
      { numRuns: runs },
    )
  })

  test('of Stripe, of the page that it opened', async () => {
    await fc.assert(
      fc.asyncProperty(lie, async (told) => {
        cards.store.bend = (_call, page) => lied(page, told)
        const answer = await cards.checkout(someone(), ['monthly'])
        cards.store.bend = undefined
        await assertAnswered(answer, [200, 400, 503], async () => false)
        if (answer.status === 200) assert.match(answer.body.checkout.url, /^https?:\/\//)
      }),
      { numRuns: runs },
    )
  })

  test('of Stripe, of what was paid: once it says the truth again, nothing that is paid is missing', async () => {
    const who = someone()
    const { session, root } = await cards.buy(who, ['monthly', 'pack'])
    assert.equal(await cards.tell('checkout.session.completed', session), 200)
    const { id } = await eventually(async () => {
      const { data } = await cards.project.get(`/customers/${await cards.project.customer(who)}/purchases`)
      return data[0]
    })
    const reverify = () => service.workspace('POST', `/purchases/${id}/reverify`)
    const standing = async () => [await cards.entitled(who), await cards.balance(who)]
    await eventually(async () => (await cards.balance(who)) === 110)
    await fc.assert(
      fc.asyncProperty(lie, fc.nat(6), async (told, nth) => {
        let calls = 0
        cards.store.bend = (_call, truth) => (calls++ === nth ? lied(truth, told) : truth)
        const { status, body } = await reverify()
        cards.store.bend = undefined
        assert.ok([200, 400, 503].includes(status), `${status} ${JSON.stringify(body)}`)
        const again = await reverify()
        assert.equal(again.status, 200, JSON.stringify(again.body))
        // That something was sold besides is a lie that nobody can see: it may stay.
        const [hasPro, units] = await standing()
        assert.ok(hasPro === true && Number(units) >= 110, `${hasPro} ${units}`)
      }),
      { numRuns: runs },
    )
    assert.equal(cards.store.get(root).status, 'active')
  })

  test('is never our failure, and touches nobody else', async () => {
    for (const [n, rows] of before.entries()) assert.ok(rows.length > 0, tables[n])
    assert.deepEqual(await kept(), before)
    assert.deepEqual(service.errors, [])
    // Some are taken, some are not: or nothing of it was tried.
    for (const status of [200, 503]) assert.ok((counts.get(status) ?? 0) > 0, JSON.stringify([...counts]))
  })
})

describe('too much, too late', () => {
  const large = `{"a":"${'x'.repeat(storeAnswerBytesMax)}"}`

  test('an answer of more than 8 MiB is none', async () => {
    const who = someone()
    const bought = apple.subscription(who)
    apple.store.answers.set(statusOf(bought), { status: 200, body: large })
    play.store.fault = () => ({ status: 200, body: large })
    cards.store.fault = () => ({ status: 200, body: large })
    const answers = await Promise.all([
      apple.bring(who, bought),
      play.bring(who, play.subscribe(who)),
      cards.checkout(who, ['monthly']),
    ])
    for (const world of [play, cards]) world.store.fault = undefined
    assert.deepEqual(answers.map(codeOf), [
      [503, 'app_store_purchase_unavailable'],
      [503, 'android_store_purchase_unavailable'],
      [503, 'stripe_purchase_unavailable'],
    ])
  })

  test('a store that says nothing, or each word late, has ten seconds', async () => {
    const who = someone()
    const bought = apple.subscription(who)
    apple.store.answers.set(statusOf(bought), 'hang')
    const payer = someone()
    const { session, root: charge } = await cards.buy(payer, ['pack'])
    // Four questions: the page, with its payment, its lines, and what became of a dispute.
    cards.store.dispute(charge, 'won')
    assert.equal(await cards.tell('checkout.session.completed', session), 200)
    await eventually(async () => (await cards.balance(payer)) === 10, 15_000)
    const [purchase] = (await cards.project.get(`/customers/${await cards.project.customer(payer)}/purchases`)).data
    cards.store.slowMs = 2800
    const began = performance.now()
    const timed = async (asked: Promise<{ status: number; body: Body }>) => ({
      ...(await asked),
      ms: performance.now() - began,
    })
    const answers = await Promise.all([
      timed(apple.bring(who, bought)),
      timed(service.workspace('POST', `/purchases/${purchase.id}/reverify`)),
    ])
    cards.store.slowMs = 0
    for (const { status, ms } of answers) {
      assert.equal(status, 503)
      // All four answers together take longer: 503 says that nobody waited for them. The rest is for a busy machine.
      assert.ok(ms < 3 * storeVerdictMsMax, `${ms} ms`)
    }
    assert.equal(await cards.balance(payer), 10)
  })
})

const codeOf = ({ status, body }: Answer) => [status, body.code]
