import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { must } from '../../src/kernel/assert.ts'
import { playAccountToken } from '../../src/purchases/account-tokens.ts'
import { interpret } from '../../src/purchases/google/interpret.ts'
import { parsePurchase } from '../../src/purchases/google/parse.ts'
import fc from '../harness/random.ts'
import { assertSound, dayMs, type HistoryWorld, minuteMs, openHistories, type When } from './history-world.ts'
import { chainOf, type History, historyOf, type Step, shownAt } from './play-model.ts'

const begins = Date.now()
const histories = await openHistories(begins)
after(() => histories[Symbol.asyncDispose]())

interface Reading {
  token: string
  at: number
}

/** Applies what a read at `reading.at` shows, at the instant `now`, as a call of the owner or as a notification. */
async function apply(world: HistoryWorld, history: History, reading: Reading, when: When): Promise<void> {
  const body = shownAt(history, reading.token, reading.at)
  if (body === null) return
  const purchase = must(parsePurchase('subscription', body, reading.at) ?? undefined, 'as Google documents')
  const voided = new Map(history.voided.filter(({ at }) => at <= reading.at).map(({ orderId, at }) => [orderId, at]))
  const verdict = interpret(
    {
      ...{ packageName: 'com.example.app', token: reading.token, purchase, voided, isKnown: true, leaseMs: dayMs },
      ...{ chain: chainOf(history, reading.token), readAt: reading.at, now: reading.at },
      mapped: purchase.items.map(({ productId }) => world.mapped.get(productId) ?? null),
    },
    { claims: {}, consume: false },
  )
  if (verdict.kind === 'verified') await histories.apply(world, verdict.purchase, when)
}

async function run(world: HistoryWorld, history: History, readings: readonly Reading[], end: number): Promise<void> {
  let now = history.begins
  for (const [n, reading] of readings.entries()) {
    now = Math.max(now, reading.at)
    await apply(world, history, reading, { now, asked: n % 2 === 0 })
  }
  // Whatever was lost, late or twice: in the end the purchase that stands is read once more.
  const last = { token: must(history.tokens.at(-1), 'one at least'), at: end }
  await apply(world, history, last, { now: end, asked: true })
}

const step: fc.Arbitrary<Step> = fc.record({
  kind: fc.constantFrom('renew', 'renew', 'grace', 'hold', 'cancel', 'change', 'change', 'void', 'defer'),
  days: fc.integer({ min: 1, max: 27 }),
})

let names = 0
const runs = Number(process.env.PLAY_RUNS ?? 20)

test('any order, repetition, loss and delay of readings ends in the access and the grants of the ordered history', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 10, max: 120 }),
      fc.array(step, { minLength: 1, maxLength: 6 }),
      fc.array(
        fc.record({ share: fc.double({ min: 0, max: 0.99, noNaN: true }), which: fc.nat(5), rank: fc.nat(1000) }),
        {
          maxLength: 25,
        },
      ),
      async (days, steps, samples) => {
        const end = begins + days * dayMs
        const history = historyOf(`h${++names}`, steps, { begins, end })
        const readings = samples.flatMap(({ share, which, rank }) => {
          const at = begins + Math.floor(share * (end - begins))
          const token = must(history.tokens[which % history.tokens.length], 'one of them')
          return shownAt(history, token, at) === null ? [] : [{ token, at, rank }]
        })
        const every = history.moments.map(({ token, at }) => ({ token, at }))
        const ordered = await histories.prepare('playstore')
        const inOrder = [...every, ...readings].filter(({ at }) => at <= end).toSorted((a, b) => a.at - b.at)
        await run(ordered, history, inOrder, end)
        const jumbled = await histories.prepare('playstore')
        await run(
          jumbled,
          history,
          readings.toSorted((a, b) => a.rank - b.rank),
          end,
        )
        const looked = end + minuteMs
        const [first, second] = [await histories.standing(ordered, looked), await histories.standing(jumbled, looked)]
        assert.deepEqual(
          { access: second.access, grants: second.grants, lineages: second.lineages },
          { access: first.access, grants: first.grants, lineages: first.lineages },
        )
        assert.equal(first.access, history.paidAtEnd, 'access at the end is what is paid')
        const sound = {
          keyOf: ({ orderId }: { orderId: string | null }) => orderId ?? '',
          end: looked,
          graceMs: 3 * dayMs,
        }
        assertSound(first, history.orders, sound)
        assertSound(second, history.orders, sound)
      },
    ),
    { numRuns: runs, examples: [[10, [{ kind: 'renew', days: 1 }], []]] },
  )
  await histories.assertLedger()
})

test('what is told of a plan while another takes its place waits, and does not give it back', async () => {
  const end = begins + 10 * dayMs
  const history = historyOf('waiting', [{ kind: 'change', days: 3 }], { begins, end })
  const [old = '', next = ''] = history.tokens
  const world = await histories.prepare('playstore')
  await apply(world, history, { token: old, at: begins }, { now: begins, asked: true })
  const now = begins + 5 * dayMs
  let late: Promise<void> | undefined
  await histories.holding(world, async (tx) => {
    late = apply(world, history, { token: old, at: begins + dayMs }, { now, asked: false })
    await histories.somebodyWaits()
    await apply(world, history, { token: next, at: now }, { now, asked: true, tx })
  })
  await late
  const standing = await histories.standing(world, now + minuteMs)
  assert.equal(standing.grants.length, 1)
  assertSound(standing, history.orders, { keyOf: ({ orderId }) => orderId ?? '', end: now + minuteMs, graceMs: 0 })
  await histories.assertLedger()
})

test('a purchase that comes while its customer is merged into another one is the other one’s', async () => {
  const history = historyOf('merging', [], { begins, end: begins + 10 * dayMs })
  const [token = ''] = history.tokens
  const world = await histories.prepare('playstore')
  let brought: Promise<void> | undefined
  const { eve } = await histories.merging(world, async () => {
    brought = apply(world, history, { token, at: begins }, { now: begins, asked: true })
    await histories.somebodyWaits()
  })
  await brought
  const { owner, grants } = await histories.standing(world, begins + minuteMs)
  assert.deepEqual([owner, grants.length], [eve, 1])
})

test('what was read while a poll asked in vain says when to look again', async () => {
  const history = historyOf('polled', [], { begins, end: begins + 10 * dayMs })
  const [token = ''] = history.tokens
  const world = await histories.prepare('playstore')
  const read = (at: number) => apply(world, history, { token, at }, { now: begins, asked: true })
  await read(begins)
  assert.notEqual(await histories.poll(world, () => read(begins + minuteMs)), null)
  assert.equal(await histories.poll(world, async () => {}), null, 'nobody knows more')
})

test('a purchase that a store tells of while its account token is registered belongs to whom it was registered for', async () => {
  const history = historyOf('bound', [], { begins, end: begins + 10 * dayMs })
  const [token = ''] = history.tokens
  const world = await histories.prepare('playstore')
  let told: Promise<void> | undefined
  const eve = await histories.binding(world, playAccountToken('ada'), async () => {
    told = apply(world, history, { token, at: begins }, { now: begins, asked: false })
    await Promise.race([histories.somebodyWaits(), told])
  })
  await told
  const { owner, grants } = await histories.standing(world, begins + minuteMs)
  assert.deepEqual([owner, grants.length], [eve, 1])
})
