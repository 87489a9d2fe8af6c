import { historyLookMs, storeLookMs, tokenBackfillLookMs, voidedLookMs } from '../kernel/limits.ts'
import { unseal } from '../kernel/seal.ts'
import type { AppStoreApi } from './apple/api.ts'
import type { AppStoreServices } from './apple/genuine.ts'
import { tokenContext } from './apply-state.ts'
import type { createCardReread } from './card/verify.ts'
import { createVerifyPush } from './google/push.ts'
import { tellPlay } from './google/tell.ts'
import type { PlayParts } from './google/verify.ts'
import { createPlayReread } from './google/verify.ts'
import { selectSealedToken } from './lifecycle-store.ts'
import type { InboxRow } from './notifications/inbox-store.ts'
import { startInbox } from './notifications/process.ts'
import { processAppStore } from './notifications/process-apple.ts'
import { followCard } from './notifications/process-card.ts'
import { followPlay } from './notifications/process-play.ts'
import { type InboxServices, inboxContext } from './notifications/receive.ts'
import { receiveAppStore } from './notifications/receive-apple.ts'
import { receiveCard } from './notifications/receive-card.ts'
import { receivePlay } from './notifications/receive-play.ts'
import { existsApp, selectScope, selectScopesOfApp } from './notifications/scopes-store.ts'
import type { OutboxRow } from './outbox/outbox-store.ts'
import { startPump, type Told } from './outbox/pump.ts'
import { readHistories } from './polls/history.ts'
import { pollDue } from './polls/poll.ts'
import { readVoidedLists } from './polls/voided.ts'
import type { StoreServices } from './purchase.ts'
import { repeat } from './repeat.ts'
import type { Reread } from './reverify.ts'
import { backfillTokens } from './token-backfill.ts'
import type { Store, StoreApp, Verifier } from './types.ts'

type Log = Parameters<typeof startPump>[0]['log']

export interface LifecycleParts {
  services: StoreServices
  play: PlayParts
  appStore: AppStoreServices
  verifyAppStore: Verifier
  cardReread: ReturnType<typeof createCardReread>
  rereads: Partial<Record<Store, Reread>>
  log: Log
}

/** Takes what stores send, in a process that serves the API. */
export function createReceivers({ services, appStore, log }: Pick<LifecycleParts, 'services' | 'appStore' | 'log'>) {
  const inbox: InboxServices = inboxOf(services, log)
  const verifyPush = createVerifyPush()
  return {
    receiveAppStore: (call: Parameters<typeof receiveAppStore>[1]) => receiveAppStore({ ...inbox, appStore }, call),
    receivePlay: (call: Parameters<typeof receivePlay>[1]) => receivePlay({ ...inbox, verifyPush }, call),
    receiveCard: (call: Parameters<typeof receiveCard>[1]) =>
      receiveCard({ ...inbox, now: () => services.clock.now() }, call),
  }
}

export interface Lifecycle extends AsyncDisposable {
  /** Something has to be told to a store. */
  wake: () => void
}

/** Keeps purchases true after they were attached: tells the stores, follows what they tell, and asks when they are silent. */
export function startLifecycle(parts: LifecycleParts): Lifecycle {
  const { services, play, appStore, verifyAppStore, cardReread, rereads, log } = parts
  const { pool } = services
  const playLifecycle = { services, reread: createPlayReread(play) }
  const appStoreLifecycle = { services, appStore, verify: verifyAppStore }
  const appOf = (scopeId: number, appId: string) => appIn(services, scopeId, appId)

  const pump = startPump({ sql: pool, log, tell: (row) => tell(parts, row) })
  const inbox = startInbox({
    sql: pool,
    log,
    async process(row) {
      const apps = (await appsOf(services, row.app_id, row.store)) ?? []
      if (row.store === 'stripe') {
        const app = apps.find(({ scope }) => scope.scopeId === row.scope_id)
        if (!app) return { kind: 'ignored', why: 'it takes no cards any more' }
        return followCard({ services, reread: cardReread }, app, { kind: row.kind, objectId: row.payload.object })
      }
      const text = textIn(services, row)
      if (text === null) return { kind: 'ignored', why: 'it says nothing of a purchase' }
      if (row.store === 'appstore') return processAppStore(appStoreLifecycle, trusted(apps, row), text)
      return followPlay(playLifecycle, trusted(apps, row), hintIn(row, text))
    },
  })
  const background = [
    { pauseMs: storeLookMs, work: () => pollDue({ services, rereads, appOf, log }) },
    {
      pauseMs: voidedLookMs,
      work: () => readVoidedLists({ ...playLifecycle, appOf, api: play.api, quota: play.quota }),
    },
    {
      pauseMs: historyLookMs,
      work: (stop: AbortSignal) => readHistories({ inbox: inboxOf(services, log), appStore, appOf }, stop),
    },
    { pauseMs: tokenBackfillLookMs, work: () => backfillTokens(services) },
  ].map((each) =>
    repeat({ ...each, onError: (error) => log.warn({ err: error }, 'purchases that are due could not be read') }),
  )
  return {
    wake: pump.wake,
    async [Symbol.asyncDispose]() {
      await Promise.all([pump, inbox, ...background].map((each) => each[Symbol.asyncDispose]()))
    },
  }
}

/** What only a test trust vouches for may touch test data only; the live trust may speak of both. */
function trusted(apps: readonly StoreApp[], { trust }: InboxRow): StoreApp[] {
  return apps.filter(({ scope }) => trust === 'live' || scope.environment === 'test')
}

function textIn({ sealingKey }: StoreServices, { payload }: InboxRow): string | null {
  const { sealed } = payload
  return typeof sealed === 'string' ? (unseal(sealingKey, inboxContext, sealed) ?? null) : null
}

function hintIn({ payload }: InboxRow, token: string) {
  const { bought, orderId, isWhole, at } = payload
  return {
    token,
    bought: bought === 'subscription' || bought === 'one_time' ? bought : null,
    voided: typeof orderId === 'string' && isWhole === true && typeof at === 'number' ? { orderId, at } : null,
  } as const
}

function inboxOf(services: StoreServices, log: Log): InboxServices {
  const { pool, sealingKey } = services
  return { pool, sealingKey, log, appsOf: (appId, store) => appsOf(services, appId, store) }
}

async function appsOf({ pool, loadStoreApp }: StoreServices, appId: string, store: Store): Promise<StoreApp[] | null> {
  const scopes = await selectScopesOfApp(pool, appId, store)
  if (scopes.length === 0 && !(await existsApp(pool, appId))) return null
  const apps: StoreApp[] = []
  for (const scope of scopes) apps.push(await loadStoreApp(pool, scope, appId))
  return apps
}

/** Null: the app is gone. */
async function appIn({ pool, loadStoreApp }: StoreServices, scopeId: number, appId: string): Promise<StoreApp | null> {
  const scope = await selectScope(pool, scopeId)
  if (!scope || !(await existsApp(pool, appId))) return null
  return loadStoreApp(pool, scope, appId)
}

async function tell({ services, play, appStore }: LifecycleParts, row: OutboxRow): Promise<Told> {
  const app = await appIn(services, row.scope_id, row.app_id)
  if (app === null) return { kind: 'given_up', error: 'the app is gone' }
  if (row.kind === 'account_token') return tellAppStore(appStore.api, app, row)
  const sealed = await selectSealedToken(services.pool, row)
  const token = sealed === null ? undefined : unseal(services.sealingKey, tokenContext(app, row.key), sealed)
  if (token === undefined) return { kind: 'given_up', error: 'the token cannot be opened' }
  return tellPlay(play, app, row, token)
}

/** Writes the token of a purchase that came without one back to the App Store. */
async function tellAppStore(api: AppStoreApi, app: StoreApp, row: OutboxRow): Promise<Told> {
  const { originalTransactionId, appAccountToken } = row.payload
  if (typeof originalTransactionId !== 'string' || typeof appAccountToken !== 'string') {
    return { kind: 'given_up', error: 'nothing to tell' }
  }
  const path = `/inApps/v1/transactions/${encodeURIComponent(originalTransactionId)}/appAccountToken`
  const request = { path, body: { appAccountToken } }
  const answer = await api.write(app, row.store_environment, request, AbortSignal.timeout(10_000))
  if (answer.kind === 'ok') return { kind: 'done' }
  if (answer.kind === 'missing') return { kind: 'given_up', error: 'the App Store does not know it' }
  return { kind: 'again', error: answer.kind }
}
