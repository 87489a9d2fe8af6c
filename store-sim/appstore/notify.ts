import { uuid } from '../ids.ts'
import type { Delivery, Sim } from '../world.ts'
import { latestOf } from './app.ts'
import { renewalPayload, transactionPayload } from './payloads.ts'
import { type AppleApp, type Lineage, statusNumbers, type Transaction } from './types.ts'

export interface Notice {
  type: string
  subtype?: string
  transaction?: Transaction
}

/** Writes an App Store Server Notification about this moment. It is signed and sent when its turn comes. */
export function notify(sim: Sim, app: AppleApp, lineage: Lineage, notice: Notice, at: number): Delivery {
  const { type, subtype, transaction = latestOf(lineage) } = notice
  const data = {
    appAppleId: app.appAppleId,
    bundleId: app.id,
    bundleVersion: '1',
    environment: lineage.environment,
    ...(lineage.renewal === null ? {} : { status: statusNumbers[lineage.renewal.status] }),
    transaction: { ...transactionPayload(app, lineage, transaction), signedDate: at },
    ...(lineage.renewal === null ? {} : { renewal: { ...renewalPayload(app, lineage), signedDate: at } }),
  }
  return queue(sim, app, { type, ...(subtype === undefined ? {} : { subtype }) }, data, at)
}

export function notifyTest(sim: Sim, app: AppleApp, at: number): Delivery {
  const data = { appAppleId: app.appAppleId, bundleId: app.id, bundleVersion: '1', environment: 'Sandbox' }
  return queue(sim, app, { type: 'TEST' }, data, at)
}

function queue(
  sim: Sim,
  app: AppleApp,
  { type, subtype }: Notice,
  data: Record<string, unknown>,
  at: number,
): Delivery {
  const id = uuid(sim.world, 'notification')
  const delivery: Delivery = {
    id,
    label: subtype === undefined ? type : `${type} ${subtype}`,
    createdAt: at,
    nextAt: app.target === null ? null : at,
    attempts: [],
    retries: data.environment === 'Production',
    payload: {
      notificationType: type,
      ...(subtype === undefined ? {} : { subtype }),
      notificationUUID: id,
      version: '2.0',
      signedDate: at,
      data,
    },
  }
  app.deliveries.push(delivery)
  return delivery
}
