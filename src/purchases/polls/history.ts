import {
  historiesAtOnce,
  historyEveryMs,
  historyLeaseMs,
  historyPagesAtOnce,
  historyRetryMs,
  storeVerdictMsMax,
} from '../../kernel/limits.ts'
import type { HistoryPage } from '../apple/api.ts'
import type { AppStoreServices } from '../apple/genuine.ts'
import { flag, list, object, text, Unreadable } from '../google/fields.ts'
import type { InboxServices } from '../notifications/receive.ts'
import { takeSigned } from '../notifications/receive-apple.ts'
import type { StoreApp } from '../types.ts'
import { type Span, spanOf } from './history-span.ts'
import {
  type DueHistory,
  deleteHistory,
  insertMissingHistories,
  saveHistory,
  takeDueHistories,
} from './history-store.ts'

export interface HistoryParts {
  inbox: InboxServices
  appStore: AppStoreServices
  appOf: (scopeId: number, appId: string) => Promise<StoreApp | null>
}

/**
 * Reads in Apple's history what did not arrive, and after an absence everything of that time, into the inbox: there each
 * notification is known by its id, whichever way it came. Ends between two pages when `stop` does. Gives how many histories
 * were looked at.
 */
export async function readHistories(parts: HistoryParts, stop: AbortSignal): Promise<number> {
  const { pool, log } = parts.inbox
  await insertMissingHistories(pool, historyEveryMs)
  const due = await takeDueHistories(pool, { max: historiesAtOnce, leaseMs: historyLeaseMs })
  await Promise.all(
    due.map((one) =>
      readHistory(parts, one, stop).catch((error: unknown) =>
        log.warn({ err: error, app_id: one.app_id }, 'the history of notifications could not be read'),
      ),
    ),
  )
  return due.length
}

async function readHistory(parts: HistoryParts, due: DueHistory, stop: AbortSignal): Promise<void> {
  const { inbox, appStore, appOf } = parts
  const app = await appOf(due.scope_id, due.app_id)
  const apps = await inbox.appsOf(due.app_id, 'appstore')
  if (!app?.credentials.appstore?.api || apps === null) return deleteHistory(inbox.pool, due)
  const now = () => appStore.clock.now() + app.clockOffsetMs
  const readUntilMs = Number(due.read_until_ms)
  let span = spanOf(
    { readUntil: readUntilMs, underWay: due.span },
    { storeEnvironment: due.store_environment, now: now() },
  )
  let held: DueHistory | undefined = due
  let found = 0
  for (let pages = 0; held !== undefined; pages++) {
    // Others have their turn; so has the process that comes after this one.
    if (pages === historyPagesAtOnce || stop.aborted) {
      await saveHistory(inbox.pool, held, { readUntilMs, span, dueAtMs: now() })
      break
    }
    const read = await readPage(parts, app, { span, apps, storeEnvironment: due.store_environment })
    if (read.kind !== 'read') {
      // A token that ran out: whoever begins anew finds everything again.
      const kept = read.kind === 'declined' ? null : span
      await saveHistory(inbox.pool, held, { readUntilMs, span: kept, dueAtMs: now() + read.waitMs })
      break
    }
    found += read.found
    if (read.nextPage === null) {
      await saveHistory(inbox.pool, held, { readUntilMs: span.until, span: null, dueAtMs: now() + historyEveryMs })
      break
    }
    span = { ...span, nextPage: read.nextPage }
    held = await saveHistory(inbox.pool, held, { readUntilMs, span, dueAtMs: now() + historyLeaseMs })
  }
  if (found > 0) {
    const about = { app_id: due.app_id, store_environment: due.store_environment, notifications: found }
    inbox.log.warn(about, 'notifications of the App Store had not arrived: they were read from its history')
  }
}

type Read = { kind: 'read'; found: number; nextPage: string | null } | { kind: 'later' | 'declined'; waitMs: number }

async function readPage(
  { inbox, appStore }: HistoryParts,
  app: StoreApp,
  { span, apps, storeEnvironment }: { span: Span; apps: StoreApp[]; storeEnvironment: DueHistory['store_environment'] },
): Promise<Read> {
  const answer = await appStore.api.history(app, storeEnvironment, pageOf(span), AbortSignal.timeout(storeVerdictMsMax))
  if (answer.kind === 'declined') return { kind: 'declined', waitMs: historyRetryMs }
  const saidMs = answer.kind === 'silent' ? (answer.retryAfterS ?? 0) * 1000 : 0
  const later = { kind: 'later', waitMs: Math.max(historyRetryMs, saidMs) } as const
  const page = answer.kind === 'ok' ? parse(answer.body) : null
  // The same page for ever is none.
  if (page === null || (page.nextPage !== null && page.nextPage === span.nextPage)) return later
  let found = 0
  for (const signedPayload of page.signed) {
    const taken = await takeSigned({ ...inbox, appStore }, apps, signedPayload)
    if (taken === 'undecided') return later
    if (taken === 'foreign')
      inbox.log.warn({ app_id: app.appId }, 'the history holds a notification that nobody signed')
    if (taken === 'new') found++
  }
  return { kind: 'read', found, nextPage: page.nextPage }
}

function pageOf({ from, until, whole, nextPage }: Span): HistoryPage {
  return { startDate: from, endDate: until, onlyFailures: !whole, paginationToken: nextPage }
}

function parse(body: unknown): { signed: string[]; nextPage: string | null } | null {
  try {
    const { hasMore, paginationToken, notificationHistory } = object(body)
    const signed = list(notificationHistory ?? []).map((entry) => text(object(entry).signedPayload))
    return { signed, nextPage: flag(hasMore) ? text(paginationToken) : null }
  } catch (error) {
    if (error instanceof Unreadable) return null
    throw error
  }
}
