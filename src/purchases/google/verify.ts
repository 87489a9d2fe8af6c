import { systemClock } from '../../kernel/clock.ts'
import { hourMs, playRetryAfterS, storeReadAgainMs } from '../../kernel/limits.ts'
import { isAccepted } from '../environment.ts'
import type { Quota } from '../quota.ts'
import type {
  Evidence,
  KnownLineage,
  MappedProduct,
  Refused,
  StoreApp,
  StoreEnvironment,
  Verdict,
  Verifier,
  VerifyContext,
} from '../types.ts'
import { allowedOf, playAccess } from './access.ts'
import { tokenKeyOf } from './chain.ts'
import { agreesWithSaved } from './claims.ts'
import { interpret } from './interpret.ts'
import type { KnownBad } from './known-bad.ts'
import type { PlayApi, PlayKind } from './play-api.ts'
import type { PlayPurchase } from './purchase.ts'
import { type PlayRead, readToken } from './read.ts'

export interface PlayParts {
  api: PlayApi
  quota: Quota
  knownBad: KnownBad
  /** Which of these orders the store voided, and when. */
  voidedOrders: (app: StoreApp, orderIds: string[]) => Promise<ReadonlyMap<string, number>>
}

/** What the verifier needs beside the evidence when a notification or a poll asks, not a client. */
export interface PlayReread {
  token: string
  /** From the notification; null: whichever it is. */
  kind: PlayKind | null
}

/** A client's purchase token against Google Play. Writes nothing. */
export function createPlayVerifier(parts: PlayParts): Verifier {
  return async (app, evidence, context) => {
    const tokenKey = tokenKeyOf(evidence.text)
    const known = await knownAnywhere(app, context, tokenKey)
    if (known !== null && (await isFresh(app, evidence, context, known))) return asStored(known)
    const bad = known === null ? parts.knownBad.has(app.appId, tokenKey) : undefined
    if (bad !== undefined) return refusedBy({ kind: bad })
    const kinds = await kindsOf(evidence, context)
    const wanted = { token: evidence.text, kinds, known, priority: 'client' } as const
    return verify(parts, app, context, { ...wanted, evidence })
  }
}

/** The same for tokens that we hold, asked behind all clients. */
export function createPlayReread(parts: PlayParts) {
  return async (app: StoreApp, { token, kind }: PlayReread, context: VerifyContext): Promise<Verdict> => {
    const known = await knownAnywhere(app, context, tokenKeyOf(token))
    const kinds = kind === null ? eitherKind : [kind]
    const wanted = { token, kinds, known, priority: 'background' } as const
    return verify(parts, app, context, { ...wanted, evidence: { claims: {}, consume: false } })
  }
}

interface Wanted extends Omit<PlayReread, 'kind'> {
  kinds: readonly PlayKind[]
  known: Stored | null
  priority: 'client' | 'background'
  evidence: Pick<Evidence, 'claims' | 'consume'>
}

async function verify(
  { api, quota, knownBad, voidedOrders }: PlayParts,
  app: StoreApp,
  context: VerifyContext,
  { token, kinds, known, priority, evidence }: Wanted,
): Promise<Verdict> {
  const access = playAccess(app)
  if (access === null) return { kind: 'refused', suffix: 'unavailable', detail: 'not_configured' }
  const read = await readToken(api, app, {
    ...{ access, token, kinds },
    known: async (key) => (await knownAnywhere(app, context, key))?.lineage ?? null,
    mayCall: () => quota.take(allowedOf(access), priority),
  })
  if (read.kind !== 'read') {
    const isBad = read.kind === 'unknown' || read.kind === 'invalid' || read.kind === 'gone'
    if (read.kind === 'gone' && known !== null) return asStored(known)
    if (isBad && known === null) knownBad.add(app.appId, tokenKeyOf(token), read.kind)
    return refusedBy(read)
  }
  const { purchase } = read
  // What was attached while testers were let in is kept up to date after that.
  const held = priority === 'background' && known !== null
  const storeEnvironment = purchase.isTest ? 'sandbox' : 'production'
  if (!isAccepted(app, storeEnvironment, { ...context, held })) return refused('invalid', 'environment')
  const verdict = interpret(
    {
      ...read,
      token,
      voided: await voidedIn(purchase, app, voidedOrders),
      isKnown: known !== null && !known.lineage.usedUp,
      packageName: access.packageName,
      mapped: await mappedOf(purchase, context),
      leaseMs: app.settings.pollLeaseHours * hourMs,
    },
    evidence,
  )
  const isUnsettled = verdict.kind === 'refused' && verdict.suffix === 'reconciliation_retryable'
  if (priority === 'background' || !isUnsettled || known === null) return verdict
  // Nothing follows from a state that nobody knows: whoever has the purchase goes on having what it gave.
  return (await isReplay(app, evidence, context, known)) ? asStored(known) : verdict
}

async function voidedIn(
  { kind, items }: PlayPurchase,
  app: StoreApp,
  voidedOrders: PlayParts['voidedOrders'],
): Promise<ReadonlyMap<string, number>> {
  if (kind === 'subscription' && !app.settings.playVoidedOrderEndsAccess) return new Map()
  return voidedOrders(
    app,
    items.flatMap(({ orderId }) => orderId ?? []),
  )
}

const eitherKind: readonly PlayKind[] = ['subscription', 'one_time']

/** What the client says it is, else what the catalogue says its product is. */
async function kindsOf({ claims }: Evidence, { productFor }: VerifyContext): Promise<readonly PlayKind[]> {
  if (claims.productType !== undefined) return [claims.productType]
  if (claims.productId === undefined) return eitherKind
  const { productId, basePlanId = null, purchaseOptionId = null, offerId = null } = claims
  const found = await productFor({ storeProductId: productId, basePlanId, purchaseOptionId, offerId })
  return found === null ? eitherKind : [found.product.type]
}

async function mappedOf(purchase: PlayPurchase, { productFor }: VerifyContext): Promise<(MappedProduct | null)[]> {
  const mapped: (MappedProduct | null)[] = []
  for (const { productId: storeProductId, basePlanId, purchaseOptionId, offerId } of purchase.items) {
    mapped.push(await productFor({ storeProductId, basePlanId, purchaseOptionId, offerId }))
  }
  return mapped
}

/** Read a moment ago, and somebody's: what is stored answers, unless the client says or wants something else. */
async function isFresh(app: StoreApp, evidence: Evidence, context: VerifyContext, known: Stored): Promise<boolean> {
  const { lastReadAt } = known.lineage
  if (lastReadAt === null || systemClock.now() - lastReadAt >= storeReadAgainMs) return false
  return isReplay(app, evidence, context, known)
}

/** Somebody has it, and the client says and wants nothing else than when it was answered before. */
async function isReplay(
  { packageName }: StoreApp,
  { claims, consume }: Pick<Evidence, 'claims' | 'consume'>,
  context: VerifyContext,
  { environment, lineage, tokenKey }: Stored,
): Promise<boolean> {
  if (consume || !lineage.attached) return false
  const saved = await context.saved(environment, tokenKey)
  return saved !== null && packageName !== null && agreesWithSaved(claims, saved, packageName)
}

interface Stored {
  tokenKey: string
  environment: StoreEnvironment
  lineage: KnownLineage
}

function asStored({ environment, tokenKey }: Stored): Verdict {
  return { kind: 'as_stored', storeEnvironment: environment, evidenceKey: tokenKey }
}

/** Whether a purchase is a tester's is only known once it is read; a test environment holds nothing else. */
async function knownAnywhere({ scope }: StoreApp, { known }: VerifyContext, tokenKey: string): Promise<Stored | null> {
  const environments: StoreEnvironment[] = scope.environment === 'test' ? ['sandbox'] : ['production', 'sandbox']
  for (const environment of environments) {
    const lineage = await known(environment, tokenKey)
    if (lineage !== null) return { tokenKey, environment, lineage }
  }
  return null
}

/** The second decision table: what each of Google's refusals means for the caller. */
function refusedBy(answer: Exclude<PlayRead, { kind: 'read' }>): Refused {
  switch (answer.kind) {
    case 'invalid':
      return refused('invalid', 'store_refused')
    case 'unknown':
      return refused('invalid', 'store_does_not_know')
    case 'gone':
      return refused('unsupported', 'evidence_expired')
    case 'refused':
      return refused('unavailable', 'credentials_refused')
    case 'limited':
      return { ...refused('unavailable', 'rate_limited'), retryAfterS: answer.retryAfterS ?? playRetryAfterS }
    case 'silent':
      return { ...refused('unavailable', 'store_unreachable'), ...waitOf(answer) }
  }
}

function waitOf({ retryAfterS }: { retryAfterS?: number }): Pick<Refused, 'retryAfterS'> {
  return retryAfterS === undefined ? {} : { retryAfterS }
}

function refused(suffix: Refused['suffix'], detail: string): Refused {
  return { kind: 'refused', suffix, detail }
}
