import type { Json, JsonObject } from '../../events/index.ts'
import { isUuid } from '../../kernel/ids.ts'
import { isStorableJson } from '../../kernel/text.ts'

/** Which kind of string is expected is decided by who asks, never by the string. */
export type JwsKind = 'transaction' | 'renewal' | 'notification' | 'app_transaction'

/** Claims of a transaction that we rely on; all others stay as they are. */
export interface TransactionClaims extends JsonObject {
  transactionId: string
  originalTransactionId: string
  bundleId: string
  productId: string
  type: string
  purchaseDate: number
  signedDate: number
  environment: string
  inAppOwnershipType: string
}

interface Shape {
  required: readonly string[]
  strings: readonly string[]
  numbers: readonly string[]
  booleans: readonly string[]
  /** Claims that only another kind has. */
  never: readonly string[]
}

const shapes: Record<JwsKind, Shape> = {
  transaction: {
    required: [
      ...['transactionId', 'originalTransactionId', 'bundleId', 'productId', 'type', 'purchaseDate', 'signedDate'],
      ...['environment', 'inAppOwnershipType'],
    ],
    strings: [
      ...['transactionId', 'originalTransactionId', 'webOrderLineItemId', 'bundleId', 'productId', 'type'],
      ...['subscriptionGroupIdentifier', 'appAccountToken', 'inAppOwnershipType', 'offerIdentifier', 'environment'],
      ...['storefront', 'storefrontId', 'transactionReason', 'currency', 'offerDiscountType', 'appTransactionId'],
      ...['offerPeriod', 'revocationType'],
    ],
    numbers: [
      ...['purchaseDate', 'originalPurchaseDate', 'expiresDate', 'quantity', 'signedDate', 'revocationReason'],
      ...['revocationDate', 'offerType', 'price', 'revocationPercentage'],
    ],
    booleans: ['isUpgraded'],
    never: ['notificationUUID', 'autoRenewProductId', 'receiptType'],
  },
  renewal: {
    required: ['originalTransactionId', 'autoRenewProductId', 'autoRenewStatus', 'signedDate', 'environment'],
    strings: [
      ...['originalTransactionId', 'autoRenewProductId', 'productId', 'offerIdentifier', 'environment', 'currency'],
      ...['offerDiscountType', 'appAccountToken', 'appTransactionId', 'offerPeriod'],
    ],
    numbers: [
      ...['expirationIntent', 'autoRenewStatus', 'priceIncreaseStatus', 'gracePeriodExpiresDate', 'offerType'],
      ...['signedDate', 'recentSubscriptionStartDate', 'renewalDate', 'renewalPrice'],
    ],
    booleans: ['isInBillingRetryPeriod'],
    never: ['transactionId', 'notificationUUID', 'receiptType'],
  },
  notification: {
    required: ['notificationType', 'notificationUUID', 'signedDate'],
    strings: ['notificationType', 'subtype', 'notificationUUID', 'version'],
    numbers: ['signedDate'],
    booleans: [],
    never: ['transactionId', 'autoRenewProductId', 'receiptType'],
  },
  app_transaction: {
    required: ['receiptType', 'bundleId', 'receiptCreationDate'],
    strings: [
      ...['receiptType', 'bundleId', 'applicationVersion', 'originalApplicationVersion', 'deviceVerification'],
      ...['deviceVerificationNonce', 'appTransactionId', 'originalPlatform'],
    ],
    numbers: ['appAppleId', 'versionExternalIdentifier', 'receiptCreationDate', 'originalPurchaseDate', 'preorderDate'],
    booleans: [],
    never: ['transactionId', 'notificationUUID', 'autoRenewProductId'],
  },
}

const dates = [
  ...['purchaseDate', 'originalPurchaseDate', 'expiresDate', 'signedDate', 'revocationDate', 'renewalDate'],
  ...['gracePeriodExpiresDate', 'recentSubscriptionStartDate', 'receiptCreationDate', 'preorderDate'],
]
/** The year 9999 ends. */
const dateMax = 253_402_300_799_999
const ids = ['transactionId', 'originalTransactionId', 'notificationUUID']
const idCharsMax = 64
const environments = new Set(['Production', 'Sandbox', 'Xcode', 'LocalTesting'])
const subscription = 'Auto-Renewable Subscription'

/** Why a payload is none of the kind; undefined when it is. Apple's library makes every claim optional; we don't. */
export function claimsFault(kind: JwsKind, payload: JsonObject): string | undefined {
  const { required, strings, numbers, booleans, never } = shapes[kind]
  const missing = required.find((name) => payload[name] === undefined)
  if (missing !== undefined) return `${missing} is missing`
  const foreign = never.find((name) => Object.hasOwn(payload, name))
  if (foreign !== undefined) return `${foreign} belongs to another kind`
  const wrong = [
    ...strings.filter((name) => !isA('string', payload[name])),
    ...numbers.filter((name) => !isA('number', payload[name])),
    ...booleans.filter((name) => !isA('boolean', payload[name])),
  ][0]
  if (wrong !== undefined) return `${wrong} has a wrong type`
  const odd = ids.find((name) => payload[name] !== undefined && !isId(payload[name]))
  if (odd !== undefined) return `${odd} is no id`
  const undated = dates.find((name) => payload[name] !== undefined && !isDate(payload[name]))
  if (undated !== undefined) return `${undated} is no instant`
  if (!isStorableJson(payload)) return 'a text cannot be stored'
  const { environment, type } = payload
  if (environment !== undefined && !(typeof environment === 'string' && environments.has(environment)))
    return 'the environment is unknown'
  if (kind === 'transaction' && type === subscription && payload.expiresDate === undefined)
    return 'expiresDate is missing'
  return undefined
}

/** Of a transaction or a renewal info. Compared without case; all zeros stand for none. */
export function accountTokenIn(claims: JsonObject | null | undefined): string | null {
  const value = claims?.appAccountToken
  return typeof value === 'string' && isUuid(value) ? value.toLowerCase() : null
}

/** JSON has no other numbers than finite ones, except what overflows. */
function isA(type: 'string' | 'number' | 'boolean', value: Json | undefined): boolean {
  if (value === undefined) return true
  return type === 'number' ? Number.isFinite(value) : typeof value === type
}

function isDate(value: Json | undefined): boolean {
  return typeof value === 'number' && value >= 0 && value <= dateMax
}

function isId(value: Json | undefined): boolean {
  return typeof value === 'string' && value.length > 0 && value.length <= idCharsMax && /^[\x21-\x7e]+$/.test(value)
}
