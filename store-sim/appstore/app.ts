import { hash } from 'node:crypto'
import type { Clock } from '../clock/clock.ts'
import { refuse } from '../refusal.ts'
import type { World } from '../world.ts'
import { appleCatalogue } from './catalogue.ts'
import type { AppleApp, AppleProduct, Lineage, Renewal, Transaction } from './types.ts'

export function newAppleApp(id: string, clock: Clock): AppleApp {
  return {
    store: 'appstore',
    id,
    appAppleId: 1_000_000_000 + (Number.parseInt(hash('sha256', id).slice(0, 7), 16) % 900_000_000),
    clock,
    products: appleCatalogue(),
    lineages: [],
    pending: [],
    spentNonces: [],
    target: null,
    connection: null,
    deliveries: [],
  }
}

export function appleApps(world: World): AppleApp[] {
  return world.apps.filter((app) => app.store === 'appstore')
}

export function productOf(app: AppleApp, productId: string): AppleProduct {
  const product = app.products.find((one) => one.productId === productId)
  if (product === undefined) throw refuse('product_not_found', `the App Store sells no ${productId} in ${app.id}`, 404)
  return product
}

export function findTransaction(app: AppleApp, id: string): { lineage: Lineage; transaction: Transaction } | undefined {
  for (const lineage of app.lineages)
    for (const transaction of lineage.transactions) if (transaction.id === id) return { lineage, transaction }
  return undefined
}

export function latestOf(lineage: Lineage): Transaction {
  const latest = lineage.transactions.at(-1)
  if (latest === undefined) throw new Error(`${lineage.id} has no transaction`)
  return latest
}

/** The lineage of the account in this group: the App Store keeps one for ever. */
export function lineageInGroup(app: AppleApp, account: string, group: string | null): Lineage | undefined {
  return app.lineages.find((one) => one.account === account && one.group === group && one.group !== null)
}

export function subscriptionOf(lineage: Lineage): Renewal {
  if (lineage.renewal === null) throw refuse('not_a_subscription', `${lineage.id} is no subscription`, 409)
  return lineage.renewal
}

/** One id for each Apple account and app, whether it bought anything or not. */
export function appTransactionIdOf(app: AppleApp, account: string): string {
  const number = BigInt(`0x${hash('sha256', `${app.id}/${account}`).slice(0, 12)}`)
  return `70${number.toString().padStart(15, '0').slice(0, 15)}`
}
