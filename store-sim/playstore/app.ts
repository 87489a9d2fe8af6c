import type { Clock } from '../clock/clock.ts'
import { numberId, opaque } from '../ids.ts'
import { addPeriod, dayMs, minuteMs, monthMs } from '../period.ts'
import { refuse } from '../refusal.ts'
import type { Sim, World } from '../world.ts'
import { playCatalogue } from './catalogue.ts'
import type { BasePlan, Item, OneTime, Order, PlayApp, PlayProduct, PurchaseOption, Subscription } from './types.ts'

/** Not acknowledged for so long: refunded and revoked. */
const acknowledgeMs = 3 * dayMs
const testerAcknowledgeMs = 3 * minuteMs
const tokenLength = 144

export function newPlayApp(id: string, clock: Clock): PlayApp {
  return {
    store: 'playstore',
    id,
    clock,
    products: playCatalogue(),
    subscriptions: [],
    oneTimes: [],
    voided: [],
    target: null,
    connection: null,
    deliveries: [],
  }
}

export function playApps(world: World): PlayApp[] {
  return world.apps.filter((app) => app.store === 'playstore')
}

export function playProductOf(app: PlayApp, productId: string): PlayProduct {
  const product = app.products.find((one) => one.productId === productId)
  if (product === undefined) throw refuse('product_not_found', `Play sells no ${productId} in ${app.id}`, 404)
  return product
}

export function basePlanOf(app: PlayApp, productId: string, id?: string): BasePlan {
  const product = playProductOf(app, productId)
  if (product.type !== 'subscription') throw refuse('not_a_subscription', `${productId} is no subscription`, 409)
  const found = id === undefined ? product.basePlans[0] : product.basePlans.find((one) => one.id === id)
  if (found === undefined) throw refuse('base_plan_not_found', `${productId} has no base plan ${id}`, 404)
  return found
}

export function purchaseOptionOf(app: PlayApp, productId: string, id?: string): PurchaseOption {
  const product = playProductOf(app, productId)
  if (product.type !== 'one_time') throw refuse('not_one_time', `${productId} is a subscription`, 409)
  const found = id === undefined ? product.purchaseOptions[0] : product.purchaseOptions.find((one) => one.id === id)
  if (found === undefined) throw refuse('purchase_option_not_found', `${productId} has no purchase option ${id}`, 404)
  return found
}

/** The item that decides when the whole renews; add-ons follow it. */
export function mainItem(subscription: Subscription): Item {
  const [item] = subscription.items
  if (item === undefined) throw new Error(`${subscription.id} has no item`)
  return item
}

export function planOf(app: PlayApp, subscription: Subscription): BasePlan {
  const { productId, basePlanId } = mainItem(subscription)
  return basePlanOf(app, productId, basePlanId)
}

export function newToken(sim: Sim, length = tokenLength): string {
  const text = opaque(sim.world, 'token', length)
  return `${text.slice(0, 24)}.AO-${text.slice(28)}`
}

export function newOrderId(sim: Sim): string {
  const digits = numberId(sim.world, 'playOrder', '33', 11)
  return `GPA.${digits.slice(0, 4)}-${digits.slice(4, 8)}-${digits.slice(8, 12)}-${digits.slice(12)}`
}

/** Time runs too fast for minutes on an accelerated clock: there a tester has half a month. */
export function acknowledgeBy(app: PlayApp, at: number, isTest: boolean, plan?: BasePlan): number {
  const length = plan?.prepaid === true ? addPeriod(at, plan.period) - at : Number.POSITIVE_INFINITY
  const usual = app.clock.mode === 'accelerated' ? monthMs / 2 : isTest ? testerAcknowledgeMs : acknowledgeMs
  return at + (length < 7 * dayMs ? Math.min(usual, length / 2) : usual)
}

export function findByToken(app: PlayApp, token: string): Subscription | OneTime | undefined {
  const has = (one: { token: string }) => one.token === token
  return app.subscriptions.find(has) ?? app.oneTimes.find(has)
}

export function lastOrder({ orders }: { orders: Order[] }): Order | undefined {
  return orders.at(-1)
}
