import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { must } from '../../src/kernel/assert.ts'
import { type CardApp, openCardLedger, units } from './card-ledger.ts'
import { cutEverywhere } from './cut-everywhere.ts'

/** Card payments with the connection to the database lost at any statement: of the command, of the event, of what follows. */
const cards = await openCardLedger()
after(() => cards[Symbol.asyncDispose]())
const { store, openApp, open, deliver } = cards
const { pool, database } = cards.ledger
const dayMs = 24 * 3600_000

interface World extends CardApp {
  /** The page that was opened last. */
  session: string
  /** What an event will name. */
  object: string
}

type Paid = Parameters<typeof store.pay>[1]
const products = ['monthly', 'pack']

/** Paid, and nobody was told yet. */
async function paid(how?: Paid): Promise<World> {
  const seller = await openApp()
  const session = await open(seller, products)
  store.pay(session, how)
  return { ...seller, session, object: session }
}

async function known(how?: Paid): Promise<World & { root: string }> {
  const world = await paid(how)
  await deliver(world, { id: `evt_paid_${world.session}`, type: 'checkout.session.completed', object: world.session })
  return { ...world, root: String(store.get(world.session).subscription) }
}

const told = (type: string) => (world: World, url: string) =>
  deliver(world, { id: `evt_${world.object}`, type, object: world.object }, url)

/** Units that stand, and how many rows there are of everything. */
async function assertHeld({ app }: World, units: number, rows: Record<string, number>): Promise<void> {
  const { scopeId } = app.scope
  const [held] = await pool.query<{ units: bigint }>(
    `select coalesce(sum(remaining), 0)::bigint as units from ledger_grant where scope_id = $1 and revoked_at_ms is null`,
    [scopeId],
  )
  assert.equal(held?.units, BigInt(units))
  const each = { store_lineage: 1, store_transaction: 1, customer: 1, checkout_session: 1, account_binding: 1, ...rows }
  for (const [table, expected] of Object.entries(each)) {
    const found = await pool.query(`select from ${table} where scope_id = $1`, [scopeId])
    assert.equal(found.length, expected, table)
  }
  const events = await pool.query<{ status: string }>('select status from store_inbox where scope_id = $1', [scopeId])
  assert.deepEqual([...new Set(events.map(({ status }) => status))], ['done'])
  const completed = await pool.query(
    'select from checkout_session where scope_id = $1 and completed_at_ms is not null',
    [scopeId],
  )
  assert.equal(completed.length, 1, 'its page is paid')
}

test('a payment page: one at Stripe, and the one that the customer is sent to', async () => {
  await cutEverywhere(database, {
    stride: 8,
    prepare: async (): Promise<World> => ({ ...(await openApp()), session: '', object: '' }),
    async act(world, url) {
      world.session = await open(world, products, url)
    },
    healsItself: true,
    async outcome({ app, session }) {
      const { scopeId, projectId } = app.scope
      const pages = store
        .all('checkout.session')
        .filter(({ metadata }) => (metadata as Record<string, unknown>).project === projectId)
      assert.deepEqual(
        pages.map(({ id }) => id),
        [session],
      )
      const rows = await pool.query<{ session_id: string }>(
        'select session_id from checkout_session where scope_id = $1',
        [scopeId],
      )
      assert.deepEqual(rows, [{ session_id: session }])
      for (const table of ['customer', 'account_binding']) {
        assert.equal((await pool.query(`select from ${table} where scope_id = $1`, [scopeId])).length, 1, table)
      }
    },
  })
})

test('what is paid on it: attached once, the pack too', async () => {
  await cutEverywhere(database, {
    stride: 8,
    ...{ prepare: () => paid(), act: told('checkout.session.completed'), healsItself: true },
    outcome: (world) =>
      assertHeld(world, units.monthly + units.pack, { store_period: 2, ledger_grant: 2, store_inbox: 1 }),
  })
})

test('a renewal: the units of the next period, once', async () => {
  const until = Date.now() - dayMs
  await cutEverywhere(database, {
    stride: 8,
    async prepare() {
      const world = await known({ from: until - 30 * dayMs, until })
      return { ...world, object: store.invoice(world.root, until, until + 30 * dayMs) }
    },
    ...{ act: told('invoice.paid'), healsItself: true },
    outcome: (world) =>
      assertHeld(world, 2 * units.monthly + units.pack, { store_period: 3, ledger_grant: 3, store_inbox: 2 }),
  })
})

test('a refund: all that the invoice paid for', async () => {
  await cutEverywhere(database, {
    stride: 8,
    async prepare() {
      const world = await known()
      const invoice = must(
        store.all('invoice').find(({ subscription }) => subscription === world.root),
        'it was paid',
      )
      const charge = store.chargeOf(String(invoice.id))
      store.refund(charge)
      return { ...world, object: charge }
    },
    ...{ act: told('charge.refunded'), healsItself: true },
    outcome: (world) => assertHeld(world, 0, { store_period: 2, ledger_grant: 2, store_inbox: 2 }),
  })
})
