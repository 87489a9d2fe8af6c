import type { Delivery, Sim } from '../world.ts'
import { signAs } from './payloads.ts'
import type { AppleApp } from './types.ts'

const path = '/notify/appstore'

/** Signs once: retries and the history carry the very same string. */
export async function signedPayloadOf(sim: Sim, app: AppleApp, delivery: Delivery): Promise<string> {
  delivery.signedPayload ??= await signNested(sim, app, delivery)
  return delivery.signedPayload
}

export async function appleRequest(sim: Sim, app: AppleApp, delivery: Delivery) {
  return { headers: {}, body: { signedPayload: await signedPayloadOf(sim, app, delivery) } }
}

async function signNested(sim: Sim, app: AppleApp, { payload }: Delivery): Promise<string> {
  if (payload.data === undefined) return signAs(sim, app, payload, path)
  const { transaction, renewal, ...about } = payload.data as Record<string, Record<string, unknown> | undefined> // made by notify
  const data = {
    ...about,
    ...(transaction === undefined ? {} : { signedTransactionInfo: await signAs(sim, app, transaction, path) }),
    ...(renewal === undefined ? {} : { signedRenewalInfo: await signAs(sim, app, renewal, path) }),
  }
  return signAs(sim, app, { ...payload, data }, path)
}
