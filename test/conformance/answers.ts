import {
  type At,
  distinct,
  exact,
  flag,
  hold,
  integer,
  into,
  is,
  isObject,
  list,
  matching,
  nullOr,
  number,
  object,
  text,
} from './check.ts'

/** What was answered to what, both as JSON. */
type Answered = { body: unknown; sent: Record<string, unknown>; at: At }
const featureType = is('boolean', 'metered', 'creditSystem')
const environment = is('test', 'live')

const accessDecision = exact({
  customerId: text,
  featureId: text,
  requiredBalance: integer(1),
  code: is('feature_found', 'customer_missing', 'feature_inapplicable'),
  allowed: flag,
  unlimited: flag,
  balance: nullOr(number()),
  type: featureType,
})

const usageDecision = exact(
  {
    operationId: text,
    customerId: text,
    featureId: text,
    accepted: flag,
    type: featureType,
    code: text,
    quantity: integer(1),
    balance: nullOr(number()),
    unlimited: flag,
    active: flag,
    occurredAtMs: nullOr(number()),
    idempotentReplay: flag,
  },
  { entityId: text },
)

const failedItem = exact({ index: integer(), event: text, error: text }, { lane: text, endpoint: text })
const acknowledgement = exact(
  {
    status: is('success', 'partial', 'error'),
    accepted: integer(),
    processed: integer(),
    failed: integer(),
    total: integer(),
    queued: flag,
    validationFailed: integer(),
    rejectedFailed: integer(),
  },
  {
    enqueueFailed: integer(),
    eventIds: list(text, { min: 1 }),
    errors: distinct(list(failedItem), (each) => String(each.index), 'index'),
  },
)

const heard = exact({
  status: is('ok'),
  eventId: text,
  customerIdHint: text,
  accepted: is(1),
  queued: flag,
  payload: object,
})

const featureAccess = exact({
  id: text,
  ext_id: text,
  type: featureType,
  allowed: flag,
  balance: nullOr(number()),
  unlimited: flag,
})
const catalogProduct = exact({
  id: text,
  store_product_id: text,
  store_product_type: is('subscription', 'one_time'),
  base_plan_id: nullOr(text),
  purchase_option_id: nullOr(text),
  offer_id: nullOr(text),
})
const purchaseResult = exact(
  { success: flag, customer_id: text, features: list(featureAccess), idempotent_replay: flag },
  {
    ...{ transaction_id: text, purchase_token: text, order_id: text, catalog_product: catalogProduct },
    checkout: exact({ id: text, url: text, expires_at: text }),
  },
)
const token = exact({ token: matching(/^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$/) })
const configured = exact({
  status: is('ok'),
  app: exact({ id: text, name: text, appId: text, appPlatformId: text, environment }),
  timestamp: text,
})

/** What a 2xx of each operation must be. `/profile` is read apart. */
export const answers: Record<string, (answered: Answered) => void> = {
  'POST /event': ({ body, at }) => void heard(body, at),
  'GET /event': ({ body, at }) => void exact({ status: is('ok'), message: text })(body, at),
  'GET /status': ({ body, at }) => void configured(body, at),
  'GET /health': ({ body, at }) => void object(body, at),
  'POST /batch': checkAcknowledgement,
  'POST /entitled': checkAccess,
  'POST /feature/consume': checkUsage,
  'POST /purchase': checkPurchase,
  'POST /app-store/intro-eligibility': ({ body, at }) => void token(body, at),
  'POST /responses/save': checkSaved,
}

function checkAcknowledgement({ body, sent, at }: Answered): void {
  if (!acknowledgement(body, at)) return
  const {
    status,
    total,
    processed,
    accepted,
    failed,
    validationFailed,
    rejectedFailed,
    enqueueFailed = 0,
    eventIds = [],
  } = body
  const errors = body.errors ?? []
  hold(into(at, 'total'), !Array.isArray(sent.batch) || total === sent.batch.length, 'counts the items sent')
  hold(at, processed + failed === total && accepted === processed, 'adds up')
  const reasons = validationFailed + rejectedFailed === failed && enqueueFailed <= rejectedFailed
  hold(at, reasons, 'has a reason for each failure')
  hold(into(at, 'errors'), errors.length === failed, 'lists each failed item once')
  hold(
    into(at, 'errors'),
    errors.every(({ index }) => index < total),
    'names items of the batch',
  )
  hold(into(at, 'eventIds'), eventIds.length === accepted, 'names each accepted event')
  const expected = failed === 0 ? 'success' : accepted === 0 ? 'error' : 'partial'
  hold(into(at, 'status'), status === expected, `is ${expected}`)
  checkFailedNames(errors, sent.batch, at)
}

function checkFailedNames(errors: { index: number; event: string }[], batch: unknown, at: At): void {
  if (!Array.isArray(batch)) return
  for (const { index, event } of errors) {
    const item: unknown = batch[index]
    const name = isObject(item) && typeof item.event === 'string' ? item.event.toWellFormed() : undefined
    // Clients read any text where there is no name to repeat.
    hold(into(into(at, 'errors'), index), name === undefined || isNameOf(event, name), 'repeats the event of the item')
  }
}

/** Beyond 200 characters, of up to two units, nothing is a name: its beginning says enough. The cut may halve a character. */
function isNameOf(event: string, name: string): boolean {
  if (name.length <= 400) return event === name
  return event.length >= 200 && event.length <= name.length && name.startsWith(event.slice(0, -1))
}

function checkAccess({ body, sent, at }: Answered): void {
  if (!accessDecision(body, at)) return
  echoes(body, sent, ['customerId', 'featureId'], at)
  const required = sent.requiredBalance ?? sent.requiredQuantity ?? 1
  hold(into(at, 'requiredBalance'), body.requiredBalance === required, 'is what was asked for')
  hold(into(at, 'balance'), !body.unlimited || body.balance === null, 'is null when unlimited')
  if (body.type === 'boolean' || body.code !== 'feature_found') return
  const covers = body.unlimited || (body.balance ?? 0) >= body.requiredBalance
  hold(into(at, 'allowed'), body.allowed === covers, 'follows from the balance')
}

function checkUsage({ body, sent, at }: Answered): void {
  if (!usageDecision(body, at)) return
  echoes(body, sent, ['operationId', 'customerId', 'featureId', 'quantity', 'entityId'], at)
  hold(into(at, 'balance'), !body.unlimited || body.balance === null, 'is null when unlimited')
}

function echoes(body: Record<string, unknown>, sent: Record<string, unknown>, keys: string[], at: At): void {
  for (const key of keys) hold(into(at, key), body[key] === sent[key], 'is as in the request')
}

function checkPurchase({ body, sent, at }: Answered): void {
  if (!purchaseResult(body, at)) return
  const told = sent.type !== 'playstore' || !body.success || body.catalog_product !== undefined
  const isCard = sent.type === 'stripe'
  hold(
    into(at, 'checkout'),
    (body.checkout !== undefined) === isCard,
    'is there for payments by card, and for them alone',
  )
  hold(into(at, 'success'), body.success !== isCard, 'is true for what a store sold, and false for a page to pay on')
  hold(into(at, 'catalog_product'), told, 'is there for a purchase in the Play store')
  body.features.forEach((each, index) => {
    hold(into(into(at, 'features'), index), each.id === each.ext_id, 'carries the key of the Feature twice')
  })
}

const saved = exact({ status: is('saved', 'replayed', 'stale'), sequence: integer(1) })
const notSaved = exact({ status: is('error'), code: text })

function checkSaved({ body, sent, at }: Answered): void {
  if (isObject(body) && body.status === 'error') return void notSaved(body, at)
  if (!saved(body, at)) return
  hold(
    into(at, 'sequence'),
    typeof sent.sequence !== 'number' || body.sequence >= sent.sequence,
    'is not below the sent one',
  )
}
