import { strike } from '../faults.ts'
import { signPushToken } from '../pki/sign.ts'
import type { Delivery, Sim, Target } from '../world.ts'
import type { PlayApp } from './types.ts'

/** As Pub/Sub pushes: the message in base64, in an envelope, with a bearer that names the pushing account. */
export async function playRequest(sim: Sim, _app: PlayApp, delivery: Delivery, target: Target) {
  const isWrong = strike(sim.world, '/notify/playstore', ['wrong_audience']) !== undefined
  const audience = isWrong ? 'https://elsewhere.example' : target.audience
  const bearer = await signPushToken(sim.world.keys, audience, target.email, sim.wall())
  const publishTime = new Date(delivery.createdAt).toISOString()
  const data = Buffer.from(JSON.stringify(delivery.payload)).toString('base64')
  return {
    headers: { authorization: `Bearer ${bearer}` },
    body: {
      message: {
        attributes: {},
        data,
        messageId: delivery.id,
        message_id: delivery.id,
        publishTime,
        publish_time: publishTime,
      },
      subscription: target.subscription,
      deliveryAttempt: delivery.attempts.length + 1,
    },
  }
}
