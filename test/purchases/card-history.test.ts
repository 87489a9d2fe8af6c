import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { verifyLedger } from '../../src/entitlements/index.ts'
import { must } from '../../src/kernel/assert.ts'
import fc from '../harness/random.ts'
import { type CardApp, openCardLedger, units } from './card-ledger.ts'

const cards = await openCardLedger()
after(() => cards[Symbol.asyncDispose]())
const { store, openApp, open, deliver } = cards
const { pool } = cards.ledger
const dayMs = 24 * 3600_000
const monthMs = 30 * dayMs
const graceMs = 72 * 3600_000
/** Of every life: three months go by until something of what is paid lies ahead. */
const begins = Math.floor(Date.now() / 1000) * 1000 - 70 * dayMs
const runs = Number(process.env.CARD_RUNS ?? 8)

interface Event {
  id: string
  type: string
  object: string
}

/** A subscription bought with a pack, as it is at Stripe. */
interface Life {
  seller: CardApp
  session: string
  root: string
  price: 'monthly' | 'yearly'
  status: string
  cancelsAtEnd: boolean
  until: number
  /** The oldest first. */
  invoices: { id: string; charge: string; returned: number; dispute: string | null; isDisputed: boolean }[]
  /** All that Stripe tells of it, in the order in which it happened. */
  events: Event[]
}

interface Step {
  kind: (typeof kinds)[number]
  /** Which of the invoices, where it is about one. */
  which: number
}

const amount = 4900
const kinds = [
  ...['renew', 'renew', 'fail', 'recover', 'cancel', 'stay', 'delete', 'unpaid', 'pause', 'change', 'change'],
  ...['refund', 'half', 'dispute', 'win', 'lose'],
] as const

function tell(life: Life, type: string, object: string): void {
  life.events.push({ id: `evt_${life.seller.app.appId}_${life.events.length}`, type, object })
}

function billed(life: Life, id: string): void {
  const charge = store.chargeOf(id)
  life.invoices.push({ id, charge, returned: 0, dispute: null, isDisputed: false })
  tell(life, 'invoice.paid', id)
}

async function begin(): Promise<Life> {
  const seller = await openApp()
  const session = await open(seller, ['monthly', 'pack'])
  const until = begins + monthMs
  const root = store.pay(session, { from: begins, until })
  const price = 'monthly'
  const life: Life = {
    ...{ seller, session, root, price, status: 'active', cancelsAtEnd: false, until, invoices: [], events: [] },
  }
  tell(life, 'checkout.session.completed', session)
  const first = store.all('invoice').find(({ subscription }) => subscription === root)
  billed(life, String(must(first, 'it was paid').id))
  return life
}

/** What can't happen now doesn't. */
function happen(life: Life, { kind, which }: Step): void {
  const { root } = life
  const set = (status: string, type = 'customer.subscription.updated') => {
    life.status = status
    store.change(root, { status })
    tell(life, type, root)
  }
  const invoice = must(life.invoices[which % life.invoices.length], 'one was paid')
  if (life.status === 'canceled' && !['refund', 'half', 'dispute', 'win', 'lose'].includes(kind)) return
  switch (kind) {
    case 'renew':
      if (life.until >= Date.now() || life.status !== 'active') return
      billed(life, store.invoice(root, life.until, life.until + monthMs))
      life.until += monthMs
      tell(life, 'customer.subscription.updated', root)
      break
    case 'fail':
      set('past_due')
      break
    case 'recover':
      set('active')
      break
    case 'unpaid':
      set('unpaid')
      break
    case 'pause':
      set('paused')
      break
    case 'delete':
      set('canceled', 'customer.subscription.deleted')
      break
    case 'cancel':
    case 'stay':
      life.cancelsAtEnd = kind === 'cancel'
      store.change(root, { cancel_at_period_end: life.cancelsAtEnd })
      tell(life, 'customer.subscription.updated', root)
      break
    case 'change': {
      life.price = life.price === 'monthly' ? 'yearly' : 'monthly'
      const { items } = store.get(root) as { items: { data: object[] } }
      const price = { id: `price_${life.price}` }
      store.change(root, { items: { data: items.data.map((item) => ({ ...item, price })) } })
      tell(life, 'customer.subscription.updated', root)
      break
    }
    case 'refund':
    case 'half':
      invoice.returned = Math.max(invoice.returned, kind === 'half' ? amount / 2 : amount)
      store.refund(invoice.charge, invoice.returned)
      tell(life, 'charge.refunded', invoice.charge)
      break
    case 'dispute':
      if (invoice.dispute !== null) return
      invoice.dispute = store.dispute(invoice.charge)
      invoice.isDisputed = true
      tell(life, 'charge.dispute.created', invoice.dispute)
      break
    case 'win':
    case 'lose':
      if (invoice.dispute === null) return
      invoice.isDisputed = kind === 'lose'
      store.change(invoice.dispute, { status: kind === 'win' ? 'won' : 'lost' })
      tell(life, 'charge.dispute.closed', invoice.dispute)
      break
  }
}

/** The units that a customer has paid for and not got back. */
function paidIn({ status, price, cancelsAtEnd, until, invoices }: Life): { subscribed: number; packs: number } {
  const [first, last] = [must(invoices[0], 'one was paid'), must(invoices.at(-1), 'one was paid')]
  const goesOn = status === 'past_due' || (status === 'active' && !cancelsAtEnd)
  const ends = until + (goesOn ? graceMs : 0)
  const isPaid = ['active', 'past_due', 'canceled'].includes(status) && ends > Date.now()
  const isLost = last.isDisputed || last.returned === amount
  return {
    subscribed: isPaid && !isLost ? units[price] : 0,
    packs: first.isDisputed ? 0 : units.pack * (1 - first.returned / amount),
  }
}

/** What stands in the ledger, whoever it took how long. */
async function standing({ seller }: Life): Promise<{ units: bigint; expires: bigint | null }[]> {
  return pool.query<{ units: bigint; expires: bigint | null }>(
    `select remaining as units, expires_at_ms as expires
     from ledger_grant
     where scope_id = $1
       and revoked_at_ms is null
       and remaining > 0
       and (expires_at_ms is null or expires_at_ms > $2)
     order by expires_at_ms`,
    [seller.app.scope.scopeId, Date.now()],
  )
}

async function assertOnce({ seller, invoices }: Life): Promise<void> {
  const { scopeId } = seller.app.scope
  const count = async (table: string) =>
    (await pool.query(`select from ${table} where scope_id = $1`, [scopeId])).length
  assert.deepEqual([await count('store_lineage'), await count('customer')], [1, 1])
  const periods = await pool.query<{ order_id: string; product_id: string }>(
    'select order_id, product_id from store_period where scope_id = $1 and granted_to is not null',
    [scopeId],
  )
  const given = periods.map(({ order_id, product_id }) => `${order_id} ${product_id}`)
  assert.equal(new Set(given).size, given.length, 'each invoice gives each Product once')
  assert.ok(periods.every(({ order_id }) => invoices.some(({ id }) => id === order_id)))
}

const step: fc.Arbitrary<Step> = fc.record({ kind: fc.constantFrom(...kinds), which: fc.nat(5) })

test('events in any order, late, twice and all at the end leave the same as each told at once', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(step, { minLength: 1, maxLength: 8 }),
      fc.array(fc.array(fc.nat(100), { maxLength: 2 }), { minLength: 8, maxLength: 8 }),
      fc.infiniteStream(fc.nat(1000)),
      async (steps, early, ranks) => {
        const ordered = await begin()
        const atOnce = async (from: number) => {
          for (const event of ordered.events.slice(from)) await deliver(ordered.seller, event)
        }
        await atOnce(0)
        const jumbled = await begin()
        for (const [n, each] of steps.entries()) {
          const before = ordered.events.length
          happen(ordered, each)
          await atOnce(before)
          happen(jumbled, each)
          for (const pick of early[n] ?? []) {
            await deliver(jumbled.seller, must(jumbled.events[pick % jumbled.events.length], 'one of them'))
          }
        }
        const rest = [...jumbled.events, ...jumbled.events.slice(0, 2)].map((event) => {
          return { event, rank: must(ranks.next().value ?? undefined, 'there is no end of them') }
        })
        for (const { event } of rest.toSorted((a, b) => a.rank - b.rank)) await deliver(jumbled.seller, event)

        const [first, second] = [await standing(ordered), await standing(jumbled)]
        assert.deepEqual(second, first)
        const { subscribed, packs } = paidIn(jumbled)
        const sum = (some: typeof first) => some.reduce((all, each) => all + Number(each.units), 0)
        assert.equal(sum(first.filter(({ expires }) => expires !== null)), subscribed, 'what is paid of the plan')
        assert.equal(sum(first.filter(({ expires }) => expires === null)), packs, 'what is paid of the pack')
        await assertOnce(ordered)
        await assertOnce(jumbled)
      },
    ),
    { numRuns: runs },
  )
  const found: unknown[] = []
  await verifyLedger(pool, { onFinding: (finding) => found.push(finding) })
  assert.deepEqual(found, [])
})
