import { nowOf } from '../clock/clock.ts'
import { recordOf } from '../http/body.ts'
import type { Routes } from '../http/router.ts'
import { appleError } from '../refusal.ts'
import type { Delivery } from '../world.ts'
import { withBearer } from './bearer.ts'
import { notifyTest } from './notify.ts'
import { signedPayloadOf } from './send.ts'

const pageSize = 20

/** What a service asks after it was away, and to see whether its address works. */
export const appleNotificationsApi: Routes = {
  'POST /appstore/inApps/v1/notifications/test': withBearer((sim, app) => {
    if (app.target === null)
      throw appleError(404, 4040007, 'No App Store Server Notification URL found for provided app.')
    const delivery = notifyTest(sim, app, nowOf(app.clock, sim.wall()))
    sim.changed()
    return { body: { testNotificationToken: delivery.id } }
  }),

  'GET /appstore/inApps/v1/notifications/test/{token}': withBearer(async (sim, app, { params }) => {
    const delivery = app.deliveries.find(({ id, label }) => id === params.token && label === 'TEST')
    if (delivery === undefined) throw appleError(404, 4040008, 'Test notification not found.')
    return { body: told(await signedPayloadOf(sim, app, delivery), delivery) }
  }),

  'POST /appstore/inApps/v1/notifications/history': withBearer(async (sim, app, request) => {
    // The codes are Apple's.
    const { startDate, endDate, notificationType, notificationSubtype, transactionId, onlyFailures } = recordOf(request)
    if (typeof startDate !== 'number') throw appleError(400, 4000015, 'Invalid request. The start date is invalid.')
    if (typeof endDate !== 'number') throw appleError(400, 4000016, 'Invalid request. The end date is invalid.')
    if (startDate >= endDate)
      throw appleError(400, 4000013, 'Invalid request. The end date precedes the start date or the dates are equal.')
    const after = request.query.get('paginationToken')
    const from = after === null ? 0 : app.deliveries.findIndex(({ id }) => `sim-${id}` === after) + 1
    if (after !== null && from === 0)
      throw appleError(400, 4000014, 'Invalid request. The pagination token is invalid.')
    const all = app.deliveries
      .slice(from)
      .filter(
        ({ createdAt, payload, attempts }) =>
          createdAt >= startDate &&
          createdAt < endDate &&
          (notificationType === undefined || payload.notificationType === notificationType) &&
          (notificationSubtype === undefined || payload.subtype === notificationSubtype) &&
          (transactionId === undefined || isAbout(payload, transactionId)) &&
          (onlyFailures !== true || attempts.at(-1)?.result !== 'SUCCESS'),
      )
    const page = all.slice(0, pageSize)
    const hasMore = page.length < all.length
    return {
      body: {
        ...(hasMore ? { paginationToken: `sim-${page.at(-1)?.id}` } : {}),
        hasMore,
        notificationHistory: await Promise.all(
          page.map(async (delivery) => told(await signedPayloadOf(sim, app, delivery), delivery)),
        ),
      },
    }
  }),
}

function told(signedPayload: string, { attempts }: Delivery) {
  return {
    signedPayload,
    sendAttempts: attempts.map(({ at, result }) => ({ attemptDate: at, sendAttemptResult: result })),
  }
}

function isAbout(payload: Delivery['payload'], transactionId: unknown): boolean {
  const { transaction } = (payload.data ?? {}) as {
    transaction?: { transactionId: string; originalTransactionId: string }
  } // of ours
  return transaction?.transactionId === transactionId || transaction?.originalTransactionId === transactionId
}
