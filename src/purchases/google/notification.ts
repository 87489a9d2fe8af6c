import type { JsonObject } from '../../events/index.ts'
import type { PlayKind } from './play-api.ts'

/** What a real-time developer notification is about. What it says happened decides nothing: the purchase is read again. */
export type PlayNotification =
  | { kind: 'purchase'; name: string; token: string; bought: PlayKind }
  | {
      kind: 'voided'
      name: string
      token: string
      bought: PlayKind | null
      orderId: string | null
      isWhole: boolean
      at: number
    }
  /** Stored, and nothing follows. */
  | { kind: 'other'; name: string }

export interface Push {
  messageId: string
  subscription: string
  /** Null: not what Google Play sends. */
  message: { packageName: string; notification: PlayNotification } | null
}

/** The envelope of Pub/Sub, or null when it is none. Pure. */
export function readPush(body: unknown): Push | null {
  const { message, subscription } = fieldsOf(body)
  const { messageId, data } = fieldsOf(message)
  if (!isText(messageId, 255) || !isText(subscription, 1000)) return null
  return { messageId, subscription, message: typeof data === 'string' ? readData(data) : null }
}

function readData(data: string): Push['message'] {
  const parsed = fieldsOf(parse(Buffer.from(data, 'base64').toString()))
  const { packageName, eventTimeMillis } = parsed
  if (!isText(packageName, 255)) return null
  const notification = notificationOf(parsed, Number(eventTimeMillis))
  return notification && { packageName, notification }
}

const productTypes = new Map<unknown, PlayKind>([
  [1, 'subscription'],
  [2, 'one_time'],
])

function notificationOf(parsed: Record<string, unknown>, eventAt: number): PlayNotification | null {
  const { subscriptionNotification, oneTimeProductNotification, voidedPurchaseNotification } = parsed
  if (subscriptionNotification !== undefined) return purchaseOf('subscription', fieldsOf(subscriptionNotification))
  if (oneTimeProductNotification !== undefined) return purchaseOf('one_time', fieldsOf(oneTimeProductNotification))
  if (voidedPurchaseNotification === undefined) {
    const [name = 'unknown'] = Object.keys(parsed).filter((key) => key.endsWith('Notification'))
    return { kind: 'other', name: name.slice(0, 100) }
  }
  const { purchaseToken, orderId, productType, refundType } = fieldsOf(voidedPurchaseNotification)
  if (!isText(purchaseToken, tokenCharsMax) || !Number.isSafeInteger(eventAt)) return null
  return {
    kind: 'voided',
    name: 'voidedPurchaseNotification',
    token: purchaseToken,
    bought: productTypes.get(productType) ?? null,
    orderId: isText(orderId, 255) ? orderId : null,
    // Of a quantity, only a part may be given back; the purchase says how much is left.
    isWhole: refundType !== quantityRefund,
    at: eventAt,
  }
}

const quantityRefund = 2
const tokenCharsMax = 16_384

/** Whatever its number: a switch on numbers would miss the next one. */
function purchaseOf(
  bought: PlayKind,
  { purchaseToken, notificationType }: Record<string, unknown>,
): PlayNotification | null {
  if (!isText(purchaseToken, tokenCharsMax)) return null
  return { kind: 'purchase', name: `${bought} ${Number(notificationType)}`, token: purchaseToken, bought }
}

/** As stored; the token is sealed beside it. */
export function withoutToken(notification: PlayNotification): JsonObject {
  return Object.fromEntries(Object.entries(notification).filter(([name]) => name !== 'token'))
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

/** None of what is no object. */
function fieldsOf(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {}
}

function isText(value: unknown, charsMax: number): value is string {
  return typeof value === 'string' && value !== '' && value.length <= charsMax
}
