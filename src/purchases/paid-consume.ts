import { hash } from 'node:crypto'
import type { ConsumeAnswer, ConsumeCommand, PaidSpends } from '../entitlements/index.ts'
import { readCompact } from './apple/compact.ts'
import { attach } from './attach.ts'
import { checkPlatform, keepForCatalogue, type PurchaseServices, refusal, settle, verified } from './purchase.ts'
import type { Evidence } from './types.ts'

export interface PaidConsumeServices extends PurchaseServices {
  spends: PaidSpends
}

/** A spend and what it was paid with. */
export interface PaidConsume extends Omit<ConsumeCommand, 'purchaseKey'> {
  evidence: Evidence
}

/**
 * A spend that brings its purchase: verified outside of any transaction, then attached, drawn and saved in one. A saved
 * decision, or a denial that no purchase changes, is answered without verifying. Where the units don't suffice even so, the
 * purchase stays attached and the denial is saved.
 *
 * Throws `scope_mismatch`, `customer_deleted`, `operation_conflict`, `feature_not_found`, and the errors of purchases, which
 * save nothing for the operation.
 */
export function createPaidConsume(services: PaidConsumeServices): (command: PaidConsume) => Promise<ConsumeAnswer> {
  return async ({ evidence, ...command }) => {
    const { scope, distinctId } = command
    const bought = { scope, distinctId, evidence }
    checkPlatform(bought)
    const paid = { ...command, purchaseKey: purchaseKeyOf(evidence) }
    const known = await services.spends.answerWithoutPurchase(paid)
    if (known) return known
    const { app, purchase } = await verified(services, bought)
    const settled = await settle(services.pool, async (tx) => {
      const attached = await attach(tx, services, app, purchase, distinctId)
      // What could not be given is kept all the same, and nothing is decided.
      return attached.kind === 'attached' ? await services.spends.spend(tx, paid) : attached
    })
    if ('kind' in settled) {
      if (settled.kind === 'refused') await keepForCatalogue(services, app, bought, settled)
      throw refusal(evidence.store, settled)
    }
    services.wake()
    return settled
  }
}

/**
 * What names the purchase, the same for every signature of one transaction. Read without believing it: it only tells whether
 * a retry brings what the operation was saved with. Evidence that says nothing names itself.
 */
function purchaseKeyOf({ store, text }: Evidence): string {
  if (store === 'playstore') return `playstore ${hash('sha256', text)}`
  const compact = readCompact(text)
  const { environment, transactionId } = typeof compact === 'string' ? {} : compact.payload
  const named = typeof environment === 'string' && typeof transactionId === 'string'
  return named ? `appstore ${environment} ${transactionId}`.slice(0, keyCharsMax) : `appstore ${hash('sha256', text)}`
}

const keyCharsMax = 256
