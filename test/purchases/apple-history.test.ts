import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { must } from '../../src/kernel/assert.ts'
import { standardAccountToken } from '../../src/purchases/account-tokens.ts'
import type { TransactionClaims } from '../../src/purchases/apple/claims.ts'
import type { Fresh } from '../../src/purchases/apple/fresh.ts'
import { purchaseOf } from '../../src/purchases/apple/purchase.ts'
import fc from '../harness/random.ts'
import { graceMs, type History, historyOf, type Step, shownAt } from './apple-model.ts'
import { assertSound, dayMs, type HistoryWorld, minuteMs, openHistories } from './history-world.ts'

const begins = Date.now()
const histories = await openHistories(begins)
after(() => histories[Symbol.asyncDispose]())

/** What somebody brings, at the instant at which it was signed and read. */
interface Reading {
  at: number
  /** Of the transactions that there were by then: old ones are brought too. */
  which: number
  /** By whom the store was asked; null: what a notification carries is believed, for want of a key. */
  by: 'owner' | 'notification' | null
}

async function apply(world: HistoryWorld, history: History, reading: Reading, now: number): Promise<void> {
  const { at, which, by } = reading
  const { status, info, transactions, about } = shownAt(history, at)
  const signed = (index: number): TransactionClaims => ({
    ...must(transactions[index], 'it was bought by then'),
    signedDate: at,
  })
  const brought = signed(by === null ? about : which % transactions.length)
  const newest = by === null ? brought : signed(transactions.length - 1)
  const fresh: Fresh = {
    ...{ kind: 'read', newest, signer: null, readAt: at },
    renewal: { status, info: { ...info, signedDate: at } },
  }
  const genuine = { transaction: brought, storeEnvironment: 'sandbox', idPrefix: '', signer: null } as const
  const verdict = await purchaseOf(world.app, genuine, fresh, {
    now: at,
    productFor: async ({ storeProductId }) => world.mapped.get(storeProductId) ?? null,
  })
  assert.equal(verdict.kind, 'verified')
  if (verdict.kind === 'verified') await histories.apply(world, verdict.purchase, { now, asked: by === 'owner' })
}

const keyOf = ({ evidenceKey }: { evidenceKey: string }) => evidenceKey

async function run(world: HistoryWorld, history: History, readings: readonly Reading[], end: number): Promise<void> {
  let now = begins
  for (const reading of readings) {
    now = Math.max(now, reading.at)
    await apply(world, history, reading, now)
  }
  assertSound(await histories.standing(world, now), history.paid, { keyOf, end: now, graceMs })
  // Whatever was lost, late or twice: in the end the subscription is read once more.
  await apply(world, history, { at: end, which: history.paid.size - 1, by: 'owner' }, end)
}

const step: fc.Arbitrary<Step> = fc.record({
  kind: fc.constantFrom(
    ...(['renew', 'renew', 'grace', 'retry', 'cancel', 'resubscribe', 'upgrade', 'downgrade'] as const),
    ...(['refund', 'refund_before', 'reverse', 'extend'] as const),
  ),
  days: fc.integer({ min: 1, max: 27 }),
})
const sample = fc.record({
  share: fc.double({ min: 0, max: 0.99, noNaN: true }),
  which: fc.nat(5),
  rank: fc.nat(1000),
  by: fc.constantFrom('owner', 'notification', null),
})

const late = (share: number, rank: number, by: Reading['by'], which = 0) => ({ share, rank, by, which })
/** What was found once, and chance finds seldom. */
const examples: [number, Step[], ReturnType<typeof late>[]][] = [
  [10, [{ kind: 'renew', days: 1 }], []],
  // What was read during grace is applied after what was read when it was over.
  [35, [{ kind: 'grace', days: 1 }], [late(0.9, 2, 'owner'), late(0.98, 1, 'owner', 1)]],
  // A refund of a period that is over is taken back during the grace of another one.
  [
    65,
    [
      { kind: 'renew', days: 1 },
      { kind: 'refund_before', days: 1 },
      { kind: 'grace', days: 3 },
    ],
    [late(0, 1, 'owner'), late(0.5, 2, 'owner'), late(0.955, 3, null)],
  ],
]

let names = 0
const runs = Number(process.env.APPLE_RUNS ?? 20)

test('any order, repetition, loss and delay of what the App Store says ends in the access and the grants of the ordered history', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 10, max: 120 }),
      fc.array(step, { minLength: 1, maxLength: 7 }),
      fc.array(sample, { maxLength: 25 }),
      async (days, steps, samples) => {
        const end = begins + days * dayMs
        const [ordered, jumbled] = [await histories.prepare('appstore'), await histories.prepare('appstore')]
        const tokenFor = ({ app }: HistoryWorld) =>
          standardAccountToken(app.accountTokenNamespace, app.scope.environment, 'ada')
        const history = historyOf(`h${++names}`, steps, { begins, end, accountToken: tokenFor(ordered) })
        const readings = samples.map(({ share, ...rest }) => {
          const at = begins + Math.floor(share * (end - begins))
          // A notification was signed when it happened.
          return { ...rest, at: rest.by === null ? shownAt(history, at).at : at }
        })
        const every = history.moments.map(({ at }) => ({ at, which: 0, by: 'notification' as const }))
        const inOrder = [...every, ...readings].filter(({ at }) => at <= end).toSorted((a, b) => a.at - b.at)
        await run(ordered, history, inOrder, end)
        await run(
          jumbled,
          history,
          readings.toSorted((a, b) => a.rank - b.rank),
          end,
        )
        const looked = end + minuteMs
        const [first, second] = [await histories.standing(ordered, looked), await histories.standing(jumbled, looked)]
        assert.equal(first.access, history.paidAtEnd, 'access at the end is what is paid')
        assert.deepEqual(
          { access: second.access, grants: second.grants, lineages: second.lineages },
          { access: first.access, grants: first.grants, lineages: first.lineages },
        )
        const sound = { keyOf, end: looked, graceMs }
        assertSound(first, history.paid, sound)
        assertSound(second, history.paid, sound)
      },
    ),
    { numRuns: runs, examples, endOnFailure: true },
  )
  await histories.assertLedger()
})
