/**
 * The catalogue of expected errors: every code a caller can see, with its status and public words.
 * Source: the contract of the App API and the Workspace API. Anything not thrown through `refuse` is a bug and answers 500.
 */
const catalogue = {
  invalid_request: [400, 'The request is not valid.'],
  unknown_field: [400, 'The request has a field this operation does not know.'],
  invalid_json: [400, 'The body is not valid JSON.'],
  token_create_failed: [400, 'No session could be made.'],
  app_store_purchase_invalid: [400, 'The purchase is not valid for this app, environment or Product.'],
  app_store_purchase_owner_unverified: [400, 'The purchase was not made for this customer.'],
  app_store_purchase_unsupported: [400, 'The purchase cannot be attached.'],
  stripe_purchase_invalid: [400, 'A Product is unknown, or cannot be bought by card.'],
  stripe_purchase_owner_unverified: [400, 'The purchase was not made for this customer.'],
  stripe_purchase_unsupported: [400, 'The app does not take payments by card.'],
  android_store_purchase_invalid: [400, 'The purchase is not valid for this app, environment or Product.'],
  android_store_purchase_owner_unverified: [400, 'The purchase was not made for this customer.'],
  android_store_purchase_unsupported: [400, 'The purchase cannot be attached.'],
  test_only: [400, 'This is for the test environment only.'],
  unsupported_encoding: [400, 'The content encoding is not supported here.'],
  draft_invalid: [400, 'The draft cannot be published.'],
  artifact_type_unknown: [400, 'Files of this type are not taken.'],
  artifact_hash_mismatch: [400, 'The bytes have another hash than the one that was named.'],
  key_weak: [400, 'The key is not safe to verify signatures with.'],
  key_is_public: [400, 'The seed is printed in public documents: anybody can sign with it.'],
  invalid_api_key: [401, 'The key is missing, invalid or revoked.'],
  notification_unverified: [401, 'The notification does not come from its store.'],
  invalid_credentials: [401, 'The e-mail address and the password do not belong together.'],
  key_kind_invalid: [401, 'This kind of key is not accepted here.'],
  api_access_required: [402, 'The workspace has no API access.'],
  billing_payment_required: [402, 'The workspace has a payment outstanding.'],
  scope_mismatch: [403, 'The request names another app or environment than its key.'],
  workspace_access_denied: [403, 'You are not a member of this workspace.'],
  workspace_admin_required: [403, 'This needs an owner or admin of the workspace.'],
  email_verification_required: [403, 'The e-mail address is not verified yet.'],
  not_found: [404, 'Not found.'],
  experience_not_startable: [404, 'No Experience with the trigger api is live in this app under this id.'],
  feature_not_found: [404, 'No published Feature has this key.'],
  method_not_allowed: [405, 'The method is not allowed here.'],
  operation_conflict: [409, 'The operation id was used before with other input.'],
  identity_conflict: [409, 'The identities cannot be joined.'],
  idempotency_conflict: [409, 'The Idempotency-Key was used before with another body.'],
  draft_conflict: [409, 'The draft was saved by somebody else since it was read.'],
  signing_key_missing: [409, 'No key signs for the app: create one and activate it.'],
  key_id_in_use: [409, 'The key id belongs to another key, for ever.'],
  conflict: [409, 'The request conflicts with what is stored.'],
  app_store_purchase_conflict: [409, 'The purchase belongs to another customer.'],
  stripe_purchase_conflict: [409, 'The purchase belongs to another customer.'],
  android_store_purchase_conflict: [409, 'The purchase belongs to another customer.'],
  customer_deleted: [410, 'The customer was deleted.'],
  payload_too_large: [413, 'The body is too large.'],
  rate_limited: [429, 'Too many requests.'],
  release_self_check_failed: [500, 'What was made would be refused by clients. Nothing has changed.'],
  internal_error: [500, 'Something went wrong on our side.'],
  billing_unavailable: [503, 'Access cannot be decided at the moment. Retry with the same operation id.'],
  query_timeout: [503, 'The query takes too long. Ask for less, or make an export with POST /v1/event_exports.'],
  app_store_purchase_reconciliation_retryable: [503, 'The purchase is not settled yet. Retry with the same evidence.'],
  app_store_purchase_unavailable: [503, 'The purchase cannot be verified at the moment. Retry with the same evidence.'],
  stripe_purchase_reconciliation_retryable: [503, 'The purchase is not settled yet. Retry with the same request.'],
  stripe_purchase_unavailable: [503, 'Payments cannot be started at the moment. Retry with the same request.'],
  android_store_purchase_reconciliation_retryable: [
    503,
    'The purchase is not settled yet. Retry with the same evidence.',
  ],
  android_store_purchase_unavailable: [
    503,
    'The purchase cannot be verified at the moment. Retry with the same evidence.',
  ],
  service_unavailable: [503, 'The service cannot take the request at the moment. Retry.'],
} as const satisfies Record<string, readonly [number, string]>

export type ErrorCode = keyof typeof catalogue
export interface Issue {
  path: string
  message: string
}

export interface RefusalDetail {
  /** Public sentence; the catalogue's words when absent. */
  message?: string
  details?: Record<string, unknown>
  issues?: Issue[]
  param?: string
  /** Instead of the catalogue's, for the one code that the contract gives two. */
  status?: 429
  /** Public: why a purchase can't be attached. */
  reason?: string
  /** Seconds; every 429 and 503 carries one. */
  retryAfterS?: number
  /** Never shown to the caller, only logged. */
  cause?: unknown
}

/** An expected refusal. `status`, `code` and `message` are public. */
export class Refusal extends Error {
  readonly code: ErrorCode
  readonly status: number
  readonly detail: RefusalDetail

  constructor(code: ErrorCode, detail: RefusalDetail) {
    const [status, words] = catalogue[code]
    super(detail.message ?? words, { cause: detail.cause })
    this.name = 'Refusal'
    this.code = code
    this.status = detail.status ?? status
    this.detail = detail
  }
}

/** Makes the error to throw: `throw refuse('operation_conflict', { details: { operationId } })`. */
export function refuse(code: ErrorCode, detail: RefusalDetail = {}): Refusal {
  return new Refusal(code, detail)
}
