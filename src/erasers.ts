import { type Eraser, segmentEraser, wireCustomerId } from './customers/index.ts'
import { createLedgerEraser } from './entitlements/index.ts'
import { eraseEventAnswers, eraseEvents } from './events/index.ts'
import { experimentEraser } from './experiences/index.ts'
import { journeyEraser } from './journeys/index.ts'
import { type Refusal, refuse } from './kernel/errors.ts'
import { purchaseEraser } from './purchases/index.ts'
import { eraseAnswers, type InstanceSecrets } from './tenancy/index.ts'

/** What is erased of a deleted customer, part by part, before the log and after it. Names are remembered: they stay. */
export function erasersOf(secrets: InstanceSecrets): Eraser[] {
  return [
    { name: 'events', erase: eraseEvents },
    { name: 'event answers', erase: eraseEventAnswers },
    { name: 'ledger', erase: createLedgerEraser(secrets) },
    segmentEraser,
    purchaseEraser,
    experimentEraser,
    journeyEraser,
    answers,
  ]
}

/** What the Workspace API would repeat for an Idempotency-Key. */
const answers: Eraser = {
  name: 'answers',
  async erase(tx, scope, { customerIds, distinctIds }) {
    const texts = [
      ...distinctIds.map((id) => `distinct_id":${JSON.stringify(id)}`),
      ...customerIds.map((id) => JSON.stringify(wireCustomerId(id))),
    ]
    await eraseAnswers(tx, scope.workspaceId, texts, gone(refuse('customer_deleted')))
    return true
  },
}

function gone({ status, code, message }: Refusal) {
  return { status, body: JSON.stringify({ error: { code, message, request_id: '' } }) }
}
