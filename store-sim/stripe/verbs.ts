import { addPeriod } from '../period.ts'
import { refuse } from '../refusal.ts'
import { callService } from '../service/call.ts'
import type { Sim } from '../world.ts'
import { type Account, all, change, get, type Thing } from './account.ts'
import { accountOf, cardsOf } from './cards.ts'
import { bill, dispute, invoicesOf, pay, refund } from './happen.ts'
import { tell } from './send.ts'

/** What happens to a page, and to what was paid on it. Gives where people go then, if anywhere. */
type Verb = (sim: Sim, sessionId: string) => Promise<string | undefined>

const ofOpen = ['pay', 'leave']
const ofPayment = ['refund', 'refund-half', 'dispute', 'win-dispute', 'lose-dispute']
const ofSubscription = ['renew', 'fail', 'recover', 'cancel-at-end', 'cancel', ...ofPayment]

export function verbsFor({ status, mode }: Thing): string[] {
  if (status !== 'complete') return ofOpen
  return mode === 'payment' ? ofPayment : ofSubscription
}

export const verbs: Record<string, Verb> = {
  async pay(sim, id) {
    const account = accountOf(sim)
    await learnPrices(sim, get(account, id))
    const from = account.now()
    const root = pay(account, id, { from, until: addPeriod(from, 'P1M') })
    await tell(sim, 'checkout.session.completed', id)
    const [invoice] = invoicesOf(account, root)
    if (invoice) await tell(sim, 'invoice.paid', invoice.id)
    return String(get(account, id).success_url).replaceAll('{CHECKOUT_SESSION_ID}', id)
  },
  leave: async (sim, id) => {
    const { cancel_url: url, success_url: usual } = get(accountOf(sim), id)
    return String(url ?? usual)
  },
  async renew(sim, id) {
    const account = accountOf(sim)
    const root = rootOf(account, id)
    // The next month begins at once: nobody wants to wait for it.
    const from = account.now()
    change(account, root, { status: 'active' })
    await tell(sim, 'invoice.paid', bill(account, root, { from, until: addPeriod(from, 'P1M') }))
    await tell(sim, 'customer.subscription.updated', root)
    return undefined
  },
  fail: (sim, id) => become(sim, id, { status: 'past_due' }),
  recover: (sim, id) => become(sim, id, { status: 'active' }),
  'cancel-at-end': (sim, id) => become(sim, id, { cancel_at_period_end: true }),
  cancel: (sim, id) => become(sim, id, { status: 'canceled' }, 'customer.subscription.deleted'),
  refund: (sim, id) => giveBack(sim, id, 1),
  'refund-half': (sim, id) => giveBack(sim, id, 1 / 2),
  async dispute(sim, id) {
    const account = accountOf(sim)
    await tell(sim, 'charge.dispute.created', dispute(account, chargeOf(account, id)))
    return undefined
  },
  'win-dispute': (sim, id) => closeDispute(sim, id, 'won'),
  'lose-dispute': (sim, id) => closeDispute(sim, id, 'lost'),
}

async function become(sim: Sim, id: string, changes: object, type = 'customer.subscription.updated') {
  const account = accountOf(sim)
  const root = rootOf(account, id)
  change(account, root, { ...changes })
  await tell(sim, type, root)
  return undefined
}

async function giveBack(sim: Sim, id: string, share: number) {
  const account = accountOf(sim)
  const charge = chargeOf(account, id)
  refund(account, charge, Math.floor(Number(get(account, charge).amount) * share))
  await tell(sim, 'charge.refunded', charge)
  return undefined
}

async function closeDispute(sim: Sim, id: string, status: string) {
  const account = accountOf(sim)
  const charge = chargeOf(account, id)
  const open = all(account, 'dispute').findLast((one) => one.charge === charge)
  if (open === undefined) throw refuse('not_disputed', 'nobody disputes it', 409)
  change(account, open.id, { status })
  await tell(sim, 'charge.dispute.closed', open.id)
  return undefined
}

function rootOf(account: Account, id: string): string {
  return String(get(account, id).subscription)
}

/** Of the payment, or of the newest invoice. */
function chargeOf(account: Account, id: string): string {
  const session = get(account, id)
  const charge =
    session.mode === 'payment'
      ? all(account, 'charge').find((one) => one.payment_intent === session.payment_intent)?.id
      : invoicesOf(account, rootOf(account, id))[0]?.charge
  if (typeof charge !== 'string') throw refuse('nothing_paid', 'nothing was paid', 409)
  return charge
}

/** Real prices say whether they renew; here the Products say it that they are linked to. */
async function learnPrices(sim: Sim, { metadata }: Thing): Promise<void> {
  const { endpoints, held } = cardsOf(sim)
  const { app = '', project = '' } = metadata as Record<string, string>
  const connection = endpoints[app]?.connection
  if (connection === undefined) return
  const path = `/products?limit=100&project_id=${encodeURIComponent(project)}`
  const { ok, body } = await callService(connection, 'GET', path)
  if (!ok) return
  const products: { type: string; stores: { store: string; product_id: string }[] }[] = body.data
  const once = products
    .filter(({ type }) => type === 'one_time')
    .flatMap(({ stores }) => stores.filter(({ store }) => store === 'stripe').map(({ product_id: id }) => id))
  held.pricesOnce = [...new Set([...held.pricesOnce, ...once])]
}
