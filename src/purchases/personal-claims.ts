import type { JsonObject } from '../events/index.ts'

/** What the App Store says of who bought; of Google Play no such thing is stored. It decides nothing once there was an owner. */
export const personalClaims = ['appAccountToken', 'appTransactionId']

/** Of a purchase whose owner was deleted, what is kept. */
export function withoutPersonal(claims: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(claims).filter(([key]) => !personalClaims.includes(key)))
}
