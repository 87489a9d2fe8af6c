import { uuid } from '../ids.ts'
import type { Delivery, Sim } from '../world.ts'
import { latestOf } from './app.ts'
import { renewalPayload, transactionPayload } from './payloads.ts'
import {
  type AppleApp,
  type AppleEnvironment,
  isOfXcode,
  type Lineage,
  statusNumbers,
  type Transaction,
} from './types.ts'

export interface Notice {
  type: string
  subtype?: string
  transaction?: Transaction
}

/**
 * Writes an App Store Server Notification about this moment. It is signed and sent when its turn comes. Of what is bought in
 * an app that Xcode runs the store knows nothing.
 */
export function notify(sim: Sim, app: AppleApp, lineage: Lineage, notice: Notice, at: number): void {
  if (isOfXcode(lineage.environment)) return
  const { type, subtype, transaction = latestOf(lineage) } = notice
  const about = aboutApp(app, lineage.environment)
  const data = {
    ...about,
    ...(lineage.renewal === null ? {} : { status: statusNumbers[lineage.renewal.status] }),
    transaction: { ...transactionPayload(app, lineage, transaction), signedDate: at },
    ...(lineage.renewal === null ? {} : { renewal: { ...renewalPayload(app, lineage), signedDate: at } }),
  }
  const retries = lineage.environment === 'Production'
  queue(
    sim,
    app,
    { type, ...(subtype === undefined ? {} : { subtype }) },
    { body: bodyOf(notice, about, data), retries, at },
  )
}

export function notifyTest(sim: Sim, app: AppleApp, at: number): Delivery {
  return queue(sim, app, { type: 'TEST' }, { body: { data: aboutApp(app, 'Sandbox') }, retries: false, at })
}

function aboutApp(app: AppleApp, environment: AppleEnvironment) {
  return { appAppleId: app.appAppleId, bundleId: app.id, bundleVersion: '1', environment }
}

/** Most carry `data`; some are about no purchase. */
function bodyOf({ type, subtype }: Notice, about: object, data: object): Record<string, unknown> {
  if (type === 'EXTERNAL_PURCHASE_TOKEN') return { externalPurchaseToken: { ...about, externalPurchaseId: 'sim' } }
  if (type === 'RENEWAL_EXTENSION' && subtype === 'SUMMARY') return { summary: { ...about, succeededCount: 1 } }
  return type === 'RESCIND_CONSENT' ? { appData: about } : { data }
}

function queue(
  sim: Sim,
  app: AppleApp,
  { type, subtype }: Notice,
  { body, retries, at }: { body: Record<string, unknown>; retries: boolean; at: number },
): Delivery {
  const id = uuid(sim.world, 'notification')
  const delivery: Delivery = {
    id,
    label: subtype === undefined ? type : `${type} ${subtype}`,
    createdAt: at,
    nextAt: app.target === null ? null : at,
    attempts: [],
    retries,
    payload: {
      notificationType: type,
      ...(subtype === undefined ? {} : { subtype }),
      notificationUUID: id,
      version: '2.0',
      signedDate: at,
      ...body,
    },
  }
  app.deliveries.push(delivery)
  return delivery
}
