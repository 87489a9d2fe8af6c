import type { Handler, Reply, Routes } from '../http/router.ts'
import { answerCard } from './call.ts'
import { accountOf } from './cards.ts'

/** What the service asks of Stripe. */
export const stripeApi: Routes = {
  'GET /stripe/v1/{resource}': api(),
  'GET /stripe/v1/{resource}/{id}': api(),
  'GET /stripe/v1/{resource}/{id}/{part}': api(),
  'GET /stripe/v1/{resource}/{id}/{part}/{more}': api(),
  'POST /stripe/v1/checkout/sessions': api(),
}

function api(): Handler {
  return (sim, { method, path, query, headers, bytes }): Reply => {
    const { authorization, 'idempotency-key': key } = headers
    const call = { method, path: path.slice('/stripe/v1'.length), query, authorization, body: bytes.toString() }
    const answer = answerCard(accountOf(sim), { ...call, idempotencyKey: typeof key === 'string' ? key : undefined })
    if (method === 'POST') sim.changed()
    return answer
  }
}
