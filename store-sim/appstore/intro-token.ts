import { createPrivateKey, createPublicKey } from 'node:crypto'
import { jwtVerify } from 'jose'
import { refuse } from '../refusal.ts'
import type { Sim } from '../world.ts'
import { appTransactionIdOf, findTransaction } from './app.ts'
import type { AppleApp, ApplePurchase } from './types.ts'

const audience = 'introductory-offer-eligibility'
const clockToleranceSeconds = 60

/** Whether the introductory offer is given. Refuses a token that the App Store would refuse. */
export async function spendIntroToken(
  sim: Sim,
  app: AppleApp,
  purchase: ApplePurchase,
  token: string,
): Promise<boolean> {
  const { issuerId, keyId, privateKey } = sim.world.keys.apiKey
  const { payload, protectedHeader } = await jwtVerify(token, createPublicKey(createPrivateKey(privateKey)), {
    algorithms: ['ES256'],
    issuer: issuerId,
    audience,
    clockTolerance: clockToleranceSeconds,
    currentDate: new Date(sim.wall()),
    requiredClaims: ['iat', 'nonce'],
  }).catch((error: unknown) => {
    throw refused(String(error))
  })
  if ((payload.iat ?? 0) * 1000 > sim.wall() + clockToleranceSeconds * 1000) throw refused('its iat is in the future')
  if (protectedHeader.kid !== keyId) throw refused('its kid is not that of the key')
  if (payload.bid !== app.id) throw refused('its bid is another app')
  if (payload.productId !== purchase.productId) throw refused('its productId is another product')
  if (typeof payload.allowIntroductoryOffer !== 'boolean') throw refused('allowIntroductoryOffer is no boolean')
  if (typeof payload.transactionId !== 'string' || !isOfAccount(app, purchase.account, payload.transactionId))
    throw refused('its transactionId is not of this account')
  const nonce = String(payload.nonce)
  if (app.spentNonces.includes(nonce)) throw refused('its nonce was used before')
  app.spentNonces.push(nonce)
  return payload.allowIntroductoryOffer
}

function isOfAccount(app: AppleApp, account: string, id: string): boolean {
  return id === appTransactionIdOf(app, account) || findTransaction(app, id)?.lineage.account === account
}

function refused(why: string) {
  return refuse('intro_token_refused', `the App Store would refuse this token: ${why}`)
}
