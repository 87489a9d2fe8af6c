import { opaque } from '../ids.ts'
import { log, type Sim } from '../world.ts'
import { type CardEvent, cardsOf } from './cards.ts'
import { signatureOf } from './sign.ts'

const answerMsMax = 10_000
const retryMs = 2_000
const attemptsMax = 1_000
const eventsKept = 1_000

/** Something happened: every endpoint hears of it, now or once it listens. */
export async function tell(sim: Sim, type: string, object: string): Promise<void> {
  const cards = cardsOf(sim)
  const waiting = Object.keys(cards.endpoints)
  cards.events.push({ id: `evt_${opaque(sim.world, 'evt_', 24)}`, type, object, waiting, attempts: 0, nextAt: 0 })
  if (cards.events.length > eventsKept) cards.events.splice(0, cards.events.length - eventsKept)
  await sendWaiting(sim)
}

/** In the order in which it happened, as far as each endpoint takes it. */
export async function sendWaiting(sim: Sim): Promise<void> {
  for (const event of cardsOf(sim).events) {
    if (event.waiting.length === 0 || event.nextAt > sim.wall() || event.attempts >= attemptsMax) continue
    event.attempts++
    event.nextAt = sim.wall() + retryMs
    for (const appId of event.waiting) await send(sim, event, appId)
    sim.changed()
  }
}

async function send(sim: Sim, event: CardEvent, appId: string): Promise<void> {
  const { endpoints, held } = cardsOf(sim)
  const { id, type, object } = event
  const body = JSON.stringify({ id, object: 'event', type, data: { object: held.objects[object] } })
  const status = await fetch(endpoints[appId]?.url ?? '', {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'stripe-signature': signatureOf(held.webhookSecret, body, sim.wall()),
    },
    body,
    redirect: 'manual',
    signal: AbortSignal.timeout(answerMsMax),
  }).then(
    async (response) => {
      await response.arrayBuffer()
      return response.status
    },
    () => 0,
  )
  if (status >= 200 && status < 300) event.waiting = event.waiting.filter((each) => each !== appId)
  log(sim, { kind: 'delivery', what: `stripe ${type}`, status: status === 0 ? 'NO_RESPONSE' : status })
}
