import { appleAppFor, playAppFor } from '../apps.ts'
import { appleApps, findTransaction, latestOf } from '../appstore/app.ts'
import { buy as buyApple } from '../appstore/buy.ts'
import { type AppleApp, applePurchaseShape } from '../appstore/types.ts'
import { appleVerbShape, appleVerbs } from '../appstore/verbs.ts'
import { nowOf } from '../clock/clock.ts'
import { runDue } from '../clock/run.ts'
import { bodyOf } from '../http/body.ts'
import type { Reply, Request, Routes } from '../http/router.ts'
import { numberId } from '../ids.ts'
import { playApps } from '../playstore/app.ts'
import { buy as buyPlay } from '../playstore/buy.ts'
import { playPurchaseShape } from '../playstore/types.ts'
import { oneTimeVerbs, playVerbShape, subscriptionVerbs } from '../playstore/verbs.ts'
import { refuse } from '../refusal.ts'
import { log, type Sim, type SimApp } from '../world.ts'
import { accountTokenFor } from './account-token.ts'
import { heldByAndroid, heldByIphone, signingOf } from './held.ts'

/** Buying, and everything that happens to purchases afterwards. Answers with what the device holds then. */
export const purchases: Routes = {
  'POST /sim/appstore/purchases': (sim, request) => inTurn(sim, request, () => purchaseApple(sim, request)),
  'POST /sim/playstore/purchases': (sim, request) => inTurn(sim, request, () => purchasePlay(sim, request)),
  'POST /sim/appstore/purchases/{id}/{verb}': (sim, request) => inTurn(sim, request, () => changeApple(sim, request)),
  'POST /sim/playstore/purchases/{id}/{verb}': (sim, request) => inTurn(sim, request, () => changePlay(sim, request)),
}

/** What is due comes first, and what follows from the verb goes out before its answer. */
function inTurn(sim: Sim, { method, path }: Request, work: () => Promise<object>): Promise<Reply> {
  return sim.turn(async () => {
    await runDue(sim)
    const body = await work()
    log(sim, { kind: 'control', what: `${method} ${path}`, status: 200 })
    sim.changed()
    await runDue(sim)
    return { body }
  })
}

async function purchaseApple(sim: Sim, request: Request): Promise<object> {
  const asked = bodyOf(applePurchaseShape, request)
  const signing = signingOf(asked.signing)
  const app = appleAppFor(sim, asked.app)
  const purchase = withToken(app, asked)
  if (purchase.pending === true) {
    const id = numberId(sim.world, 'pending', '8', 8)
    app.pending.push({ id, purchase: { ...purchase, pending: false }, declined: false })
    return {
      id,
      store: 'appstore',
      app: app.id,
      account: purchase.account,
      productId: purchase.productId,
      pending: true,
    }
  }
  const { lineage, transaction } = await buyApple(sim, app, purchase, nowOf(app.clock, sim.wall()))
  return heldByIphone(sim, app, lineage, transaction, { signing })
}

async function purchasePlay(sim: Sim, request: Request): Promise<object> {
  const asked = bodyOf(playPurchaseShape, request)
  const app = playAppFor(sim, asked.app)
  return heldByAndroid(app, buyPlay(sim, app, withToken(app, asked), nowOf(app.clock, sim.wall())))
}

function withToken<T extends { accountToken?: string; customer?: string }>(app: SimApp, asked: T): T {
  return asked.customer === undefined ? asked : { accountToken: accountTokenFor(app, asked.customer), ...asked }
}

async function changeApple(sim: Sim, request: Request): Promise<object> {
  const { id = '', verb = '' } = request.params
  const body = bodyOf(appleVerbShape, request)
  for (const app of appleApps(sim.world)) {
    const pending = app.pending.find((one) => one.id === id)
    if (pending !== undefined) return settlePending(sim, app, id, verb)
    const found = findTransaction(app, id)
    if (found === undefined) continue
    const { lineage } = found
    if (verb === 're-sign') {
      const named = body.order === undefined ? undefined : findTransaction(app, body.order)?.transaction
      const { header, claims } = body
      const options = { signing: signingOf(body.signing), header, claims }
      const shown = named ?? (id === lineage.id ? latestOf(lineage) : found.transaction)
      return heldByIphone(sim, app, lineage, shown, options)
    }
    const change = appleVerbs[verb]
    if (change === undefined) throw noVerb('App Store', verb)
    const transaction = id === lineage.id ? latestOf(lineage) : found.transaction
    const bought = change({ sim, app, lineage, transaction, at: nowOf(app.clock, sim.wall()), body })
    return heldByIphone(sim, app, lineage, bought?.transaction)
  }
  throw noPurchase(id)
}

async function settlePending(sim: Sim, app: AppleApp, id: string, verb: string): Promise<object> {
  const pending = app.pending.find((one) => one.id === id)
  if (pending === undefined || (verb !== 'complete-pending' && verb !== 'cancel'))
    throw noVerb('pending App Store', verb)
  app.pending = app.pending.filter((one) => one !== pending)
  if (verb === 'cancel') return { id, store: 'appstore', app: app.id, canceled: true }
  const { lineage, transaction } = await buyApple(sim, app, pending.purchase, nowOf(app.clock, sim.wall()))
  return heldByIphone(sim, app, lineage, transaction)
}

async function changePlay(sim: Sim, request: Request): Promise<object> {
  const { id = '', verb = '' } = request.params
  const body = bodyOf(playVerbShape, request)
  for (const app of playApps(sim.world)) {
    const call = { sim, app, at: nowOf(app.clock, sim.wall()), body }
    const subscription = app.subscriptions.find((one) => one.id === id)
    const oneTime = app.oneTimes.find((one) => one.id === id)
    if (subscription !== undefined) {
      if (verb === 're-sign') return heldByAndroid(app, subscription)
      const change = subscriptionVerbs[verb]
      if (change === undefined) throw noVerb('Play subscription', verb)
      return heldByAndroid(app, change({ ...call, one: subscription }) ?? subscription)
    }
    if (oneTime !== undefined) {
      if (verb === 're-sign') return heldByAndroid(app, oneTime)
      const change = oneTimeVerbs[verb]
      if (change === undefined) throw noVerb('one-time Play', verb)
      change({ ...call, one: oneTime })
      return heldByAndroid(app, oneTime)
    }
  }
  throw noPurchase(id)
}

function noVerb(what: string, verb: string) {
  return refuse('no_such_verb', `nothing called ${verb} happens to a ${what} purchase`, 404)
}

function noPurchase(id: string) {
  return refuse('purchase_not_found', `there is no purchase ${id}`, 404)
}
