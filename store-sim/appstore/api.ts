import { nowOf } from '../clock/clock.ts'
import { strike } from '../faults.ts'
import { jsonOf, recordOf } from '../http/body.ts'
import type { Reply, Request, Routes } from '../http/router.ts'
import { appleError } from '../refusal.ts'
import type { Sim } from '../world.ts'
import { findTransaction, latestOf } from './app.ts'
import { withBearer } from './bearer.ts'
import { renewalPayload, signAppTransaction, signAs, transactionPayload } from './payloads.ts'
import { type AppleApp, isOfXcode, type Lineage, statusNumbers, type Transaction } from './types.ts'
import { extend } from './verbs.ts'

const pageSize = 20
const uuidShape = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i

/** The App Store Server API, as far as a service that follows purchases needs it. */
export const appleApi: Routes = {
  'GET /appstore/inApps/v1/transactions/{id}': withBearer(async (sim, app, request) => {
    const { lineage, transaction } = known(sim, app, request, request.params.id)
    return { body: { signedTransactionInfo: await sign(sim, app, lineage, transaction, request) } }
  }),

  'GET /appstore/inApps/v1/subscriptions/{id}': withBearer(async (sim, app, request) => {
    const { lineage } = known(sim, app, request, request.params.id)
    const wanted = request.query.getAll('status').map(Number)
    const mine = app.lineages.filter(
      (one) => one.account === lineage.account && one.environment === lineage.environment && one.renewal !== null,
    )
    const data = Map.groupBy(mine, ({ group }) => group ?? '')
    return {
      body: {
        ...aboutApp(app, lineage),
        data: await Promise.all(
          [...data].map(async ([subscriptionGroupIdentifier, lineages]) => ({
            subscriptionGroupIdentifier,
            lastTransactions: (await Promise.all(lineages.map((one) => lastOf(sim, app, one, request)))).filter(
              ({ status }) => wanted.length === 0 || wanted.includes(status),
            ),
          })),
        ),
      },
    }
  }),

  'GET /appstore/inApps/v2/history/{id}': withBearer((sim, app, request) => history(sim, app, request, false)),
  'GET /appstore/inApps/v2/refund/lookup/{id}': withBearer((sim, app, request) => history(sim, app, request, true)),

  'GET /appstore/inApps/v1/lookup/{orderId}': withBearer(async (sim, app, request) => {
    const all = app.lineages.flatMap((lineage) => lineage.transactions.map((transaction) => ({ lineage, transaction })))
    const found = all.filter(({ transaction }) => transaction.orderId === request.params.orderId)
    const signedTransactions = await signAll(sim, app, found, request)
    return { body: { status: found.length > 0 ? 0 : 1, signedTransactions } }
  }),

  'GET /appstore/inApps/v1/transactions/appTransactions/{id}': withBearer(async (sim, app, request) => {
    const { lineage } = known(sim, app, request, request.params.id)
    return { body: { signedAppTransactionInfo: await signAppTransaction(sim, app, lineage, request.path) } }
  }),

  'PUT /appstore/inApps/v1/transactions/{id}/appAccountToken': withBearer((sim, app, request) => {
    const { lineage } = known(sim, app, request, request.params.id)
    const { appAccountToken } = recordOf(request)
    if (typeof appAccountToken !== 'string' || !uuidShape.test(appAccountToken))
      throw appleError(400, 4000183, 'Invalid request. The app account token field must be a valid UUID.')
    if (lineage.sharedFrom !== null)
      throw appleError(400, 4000185, 'Invalid request. Family transactions are not supported by this endpoint.')
    if (lineage.id !== request.params.id)
      throw appleError(400, 4000187, 'Invalid request. The transaction ID provided is not an original transaction ID.')
    for (const transaction of lineage.transactions) transaction.accountToken = appAccountToken.toLowerCase()
    sim.changed()
    return {}
  }),

  'PUT /appstore/inApps/v2/transactions/consumption/{id}': withBearer((sim, app, request) => {
    known(sim, app, request, request.params.id)
    const { customerConsented, sampleContentProvided, deliveryStatus } = recordOf(request)
    if (customerConsented !== true)
      throw appleError(400, 4000035, 'Invalid request. The customerConsented field is invalid.')
    if (typeof sampleContentProvided !== 'boolean')
      throw appleError(400, 4000041, 'Invalid request. The sampleContentProvided field is invalid.')
    if (typeof deliveryStatus !== 'string')
      throw appleError(400, 4000036, 'Invalid request. The deliveryStatus field is invalid.')
    return { status: 202 }
  }),

  'POST /appstore/inApps/v1/transactions/{id}/finish': withBearer((sim, app, request) => {
    known(sim, app, request, request.params.id).transaction.finished = true
    sim.changed()
    return {}
  }),

  'PUT /appstore/inApps/v1/subscriptions/extend/{id}': withBearer((sim, app, request) => {
    const { lineage } = known(sim, app, request, request.params.id)
    const { extendByDays, extendReasonCode, requestIdentifier } = recordOf(request)
    if (!isWithin(extendByDays, 1, 90)) throw appleError(400, 4000009, 'Invalid extend by days value.')
    if (!isWithin(extendReasonCode, 0, 3)) throw appleError(400, 4000010, 'Invalid extend reason code.')
    if (typeof requestIdentifier !== 'string') throw appleError(400, 4000011, 'Invalid request identifier.')
    if (lineage.sharedFrom !== null)
      throw appleError(403, 4030007, 'Subscriptions that users obtain through Family Sharing cannot be extended.')
    if (lineage.renewal?.status !== 'active')
      throw appleError(403, 4030004, 'Forbidden - subscription state ineligible for extension.')
    if (lineage.renewal.extensions >= 2)
      throw appleError(403, 4030005, 'Forbidden - subscription has reached maximum extension count.')
    extend(sim, app, lineage, extendByDays, nowOf(app.clock, sim.wall()))
    sim.changed()
    const latest = latestOf(lineage)
    return {
      body: {
        originalTransactionId: lineage.id,
        webOrderLineItemId: latest.webOrderLineItemId,
        success: true,
        effectiveDate: latest.expiresAt,
      },
    }
  }),
}

async function history(sim: Sim, app: AppleApp, request: Request, refundedOnly: boolean): Promise<Reply> {
  const { lineage } = known(sim, app, request, request.params.id)
  const { query } = request
  const from =
    query.get('revision') === null ? 0 : Number(/^sim-(\d+)$/.exec(query.get('revision') ?? '')?.[1] ?? Number.NaN)
  if (Number.isNaN(from)) throw appleError(400, 4000005, 'Invalid request revision.')
  const products = query.getAll('productId')
  const all = app.lineages
    .filter((one) => one.account === lineage.account && one.environment === lineage.environment)
    .flatMap((one) => one.transactions.map((transaction) => ({ lineage: one, transaction })))
    .filter(({ transaction }) => !refundedOnly || transaction.revocation !== null)
    .filter(({ transaction }) => products.length === 0 || products.includes(transaction.productId))
    .toSorted((a, b) => a.transaction.purchasedAt - b.transaction.purchasedAt)
  if (query.get('sort') === 'DESCENDING') all.reverse()
  const page = all.slice(from, from + pageSize)
  const signedTransactions = await signAll(sim, app, page, request)
  const paging = { revision: `sim-${from + page.length}`, hasMore: from + page.length < all.length, signedTransactions }
  return { body: refundedOnly ? paging : { ...aboutApp(app, lineage), ...paging } }
}

async function lastOf(sim: Sim, app: AppleApp, lineage: Lineage, request: Request) {
  return {
    originalTransactionId: lineage.id,
    status: statusNumbers[lineage.renewal?.status ?? 'expired'],
    signedTransactionInfo: await sign(sim, app, lineage, latestOf(lineage), request),
    signedRenewalInfo: await signAs(sim, app, renewalPayload(app, lineage), request.path),
  }
}

function signAll(sim: Sim, app: AppleApp, found: { lineage: Lineage; transaction: Transaction }[], request: Request) {
  return Promise.all(found.map(({ lineage, transaction }) => sign(sim, app, lineage, transaction, request)))
}

function sign(sim: Sim, app: AppleApp, lineage: Lineage, transaction: Transaction, { path }: Request): Promise<string> {
  return signAs(sim, app, transactionPayload(app, lineage, transaction), path)
}

function known(sim: Sim, app: AppleApp, request: Request, id = '') {
  if (jsonOf(request) === undefined) throw appleError(400, 4000000, 'Bad request.')
  if (!/^\d{1,64}$/.test(id)) throw appleError(400, 4000006, 'Invalid transaction id.')
  const found = findTransaction(app, id)
  const { code = 4040010 } = sim.world.faults.find(({ kind }) => kind === 'not_found') ?? {}
  if (found === undefined || isOfXcode(found.lineage.environment))
    throw appleError(404, 4040010, 'Transaction id not found.')
  const age = nowOf(app.clock, sim.wall()) - found.transaction.purchasedAt
  const isHidden = sim.world.faults.some(({ kind, seconds = 30 }) => kind === 'not_found' && age < seconds * 1000)
  if (isHidden && strike(sim.world, request.path, ['not_found']) !== undefined)
    throw appleError(404, code, 'Not found.')
  return found
}

function aboutApp(app: AppleApp, { environment }: Lineage) {
  return { environment, bundleId: app.id, ...(environment === 'Production' ? { appAppleId: app.appAppleId } : {}) }
}

function isWithin(value: unknown, min: number, max: number): value is number {
  return Number.isInteger(value) && Number(value) >= min && Number(value) <= max
}
