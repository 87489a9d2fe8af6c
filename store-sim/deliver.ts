import { appleRequest } from './appstore/send.ts'
import { strike } from './faults.ts'
import { hourMs } from './period.ts'
import { playRequest } from './playstore/send.ts'
import { type Delivery, log, type Sim, type SimApp } from './world.ts'

/** After the first attempt, and each time after the one before. */
const appleRetriesMs = [1, 12, 24, 48, 72].map((hours) => hours * hourMs)
const pubSubFirstRetryMs = 10_000
const pubSubRetryMsMax = 10 * 60_000
const pubSubKeepsMs = 7 * 24 * hourMs
const reorderMs = 60_000
const answerMsMax = 10_000
/** Beyond this, what was delivered longest ago is forgotten. */
const deliveriesMax = 10_000

export function nextDelivery(app: SimApp): Delivery | undefined {
  let next: Delivery | undefined
  for (const delivery of app.deliveries)
    if (delivery.nextAt !== null && (next?.nextAt == null || delivery.nextAt < next.nextAt)) next = delivery
  return next
}

/** One attempt, with the faults that notifications meet. */
export async function attempt(sim: Sim, app: SimApp, delivery: Delivery, at: number): Promise<void> {
  const path = `/notify/${app.store}`
  const isFirst = delivery.attempts.length === 0
  if (strike(sim.world, path, ['drop']) !== undefined) {
    settle(sim, app, delivery, at, 'dropped', null)
    return
  }
  const late =
    isFirst && delivery.createdAt === delivery.nextAt ? strike(sim.world, path, ['delay', 'reorder']) : undefined
  if (late !== undefined) {
    const others = app.deliveries.filter(({ nextAt, id }) => nextAt !== null && id !== delivery.id)
    // A reordered one goes after those that wait, or after a minute when none does.
    delivery.nextAt = at + (late.kind === 'delay' ? late.seconds * 1000 : others.length > 0 ? 1 : reorderMs)
    return
  }
  const result = await post(sim, app, delivery)
  const isTwice = strike(sim.world, path, ['duplicate']) !== undefined
  if (isTwice) await post(sim, app, delivery)
  settle(sim, app, delivery, at, result, result === 'SUCCESS' ? null : nextAttemptAt(app, delivery, at))
}

function settle(sim: Sim, app: SimApp, delivery: Delivery, at: number, result: string, nextAt: number | null): void {
  delivery.attempts.push({ at, result })
  delivery.nextAt = nextAt
  log(sim, { kind: 'delivery', what: `${app.store} ${delivery.label}`, status: result }, at)
  if (app.deliveries.length > deliveriesMax) app.deliveries.splice(0, app.deliveries.length - deliveriesMax)
  sim.changed()
}

function nextAttemptAt(app: SimApp, { attempts, retries, createdAt }: Delivery, at: number): number | null {
  if (app.store === 'appstore') {
    const after = retries ? appleRetriesMs[attempts.length] : undefined
    return after === undefined ? null : at + after
  }
  if (at - createdAt > pubSubKeepsMs) return null
  return at + Math.min(pubSubFirstRetryMs * 2 ** attempts.length, pubSubRetryMsMax)
}

/** What came back, in the words of the App Store's history. */
async function post(sim: Sim, app: SimApp, delivery: Delivery): Promise<string> {
  if (app.target === null) return 'OTHER'
  const { headers, body } = await (app.store === 'appstore'
    ? appleRequest(sim, app, delivery)
    : playRequest(sim, app, delivery, app.target))
  try {
    const response = await fetch(app.target.url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
      redirect: 'manual',
      signal: AbortSignal.timeout(answerMsMax),
    })
    await response.arrayBuffer()
    return response.ok ? 'SUCCESS' : `UNSUCCESSFUL_HTTP_RESPONSE_CODE ${response.status}`
  } catch (error) {
    return error instanceof Error && error.name === 'TimeoutError' ? 'TIMED_OUT' : 'NO_RESPONSE'
  }
}
