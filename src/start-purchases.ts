import type { Logger } from 'pino'
import type { Config } from './config.ts'
import { isRetryable, Pool } from './db/pool.ts'
import { systemClock as clock } from './kernel/clock.ts'
import { mappedClaimLookMs, purchaseConnections } from './kernel/limits.ts'
import {
  attachMappedClaims,
  createAppStoreApi,
  createAppStoreCheck,
  createAppStoreReread,
  createAppStoreVerifier,
  createBearers,
  createCardApi,
  createCardCheck,
  createCardLineageReread,
  createCardReread,
  createCheckCredential,
  createCheckout,
  createGuard,
  createIntroTokens,
  createKnownBad,
  createLoadStoreApp,
  createPaidConsume,
  createPlayApi,
  createPlayCheck,
  createPlayLineageReread,
  createPlayVerifier,
  createPurchase,
  createQuota,
  createReadCard,
  createReverify,
  createStoreCalls,
  createTrusts,
  openCredentialNotes,
  openRevocations,
  type PaidConsumeServices,
  type PlayParts,
  repeat,
  selectVoidedOrders,
  startLifecycle,
} from './purchases/index.ts'
import { type InstanceSecrets, sealingKeyOf } from './tenancy/index.ts'

interface Ground {
  config: Config
  log: Logger
  url: string
  secrets: InstanceSecrets
}

/** What talks to the stores, for HTTP and workers alike. */
export async function openStores(started: AsyncDisposableStack, { config, log, url, secrets }: Ground) {
  const pool = started.use(new Pool(url, { name: 'purchases', max: purchaseConnections }))
  const sealingKey = sealingKeyOf(secrets)
  const trusts = createTrusts()
  const revocations = started.use(await openRevocations({ pool, clock, trusts, log }))
  const calls = createStoreCalls(clock, started.use(openCredentialNotes({ sql: pool, log })).note)
  const appStore = { clock, trusts, revocations, api: createAppStoreApi(clock, calls) }
  const play: PlayParts = {
    api: createPlayApi(createBearers(clock), calls),
    quota: createQuota(pool),
    knownBad: createKnownBad(),
    voidedOrders: (app, orderIds) => selectVoidedOrders(pool, app, orderIds),
  }
  const cardApi = createCardApi(calls)
  const cardReread = createCardReread(createReadCard(cardApi))
  return {
    ...{ appStore, play, cardApi, cardReread, openCircuits: calls.openCircuits },
    ...{ pool, clock, sealingKey, tombstoneKey: secrets.tombstoneKey, baseUrls: [config.publicUrl] },
    loadStoreApp: createLoadStoreApp(sealingKey),
    verifiers: { appstore: createAppStoreVerifier(appStore), playstore: createPlayVerifier(play) },
    checks: {
      appstore: createAppStoreCheck(appStore.api),
      playstore: createPlayCheck(play.api),
      stripe: createCardCheck(cardApi),
    },
    rereads: {
      appstore: createAppStoreReread(appStore, pool),
      playstore: createPlayLineageReread(play, { sql: pool, sealingKey }),
      stripe: createCardLineageReread(cardReread),
    },
    /** Set by the worker of the same process, where there is one; others look by themselves. */
    wake: () => {},
  }
}

type Stores = Awaited<ReturnType<typeof openStores>>

/** What verifies, attaches and reads purchases again, for the HTTP surfaces. */
export function purchasesOf(stores: Stores, rest: Pick<PaidConsumeServices, 'whois' | 'spends'>) {
  const services = { ...stores, ...rest, guard: createGuard(() => clock.now()) }
  return {
    loadStoreApp: stores.loadStoreApp,
    purchase: createPurchase(services),
    checkout: createCheckout(services),
    paidConsume: createPaidConsume(services),
    introToken: createIntroTokens(services),
    reverify: createReverify(stores),
    checkCredential: createCheckCredential(stores),
  }
}

/** Attaches in the background what was waiting for a link, and keeps purchases true, until it is disposed. */
export function startPurchases(stores: Stores, log: Logger): AsyncDisposable {
  const { appStore, play, verifiers, cardReread, rereads } = stores
  const parts = { services: stores, appStore, play, cardReread, rereads, log }
  const lifecycle = startLifecycle({ ...parts, verifyAppStore: verifiers.appstore })
  stores.wake = lifecycle.wake
  const claims = repeat({
    work: () => attachMappedClaims(stores),
    pauseMs: mappedClaimLookMs,
    onError: (error) =>
      log[isRetryable(error) ? 'warn' : 'error']({ err: error }, 'claims to purchases could not be looked at'),
  })
  return {
    async [Symbol.asyncDispose]() {
      await Promise.all([claims, lifecycle].map((each) => each[Symbol.asyncDispose]()))
    },
  }
}
