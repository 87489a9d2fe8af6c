import type { Sql, Tx } from '../../db/pool.ts'
import { refuse } from '../../kernel/errors.ts'
import type { Page } from '../../kernel/page.ts'
import type { Scope } from '../../tenancy/index.ts'
import type { Store } from '../types.ts'
import { type NotificationRow, reviveNotification, selectDeadNotifications, selectNotification } from './dead-store.ts'

/** A notification that was taken, without what it says. */
export interface StoredNotification {
  id: bigint
  appId: string
  store: Store
  notificationId: string
  kind: string
  status: 'waiting' | 'done' | 'ignored' | 'dead'
  attempts: number
  error: string | null
  receivedAt: number
}

/** Those that were given up, the newest first. */
export async function listDeadNotifications(sql: Sql, scope: Scope, page: Page): Promise<StoredNotification[]> {
  return (await selectDeadNotifications(sql, scope, page)).map(notificationOf)
}

/** Processes a dead one again, as if it had just come. `again`: it was not dead any more, and nothing is done. Throws `not_found`. */
export async function replayDeadNotification(
  tx: Tx,
  scopes: readonly Scope[],
  id: bigint,
): Promise<{ notification: StoredNotification; again: boolean }> {
  const scopeIds = scopes.map(({ scopeId }) => scopeId)
  const [revived] = await reviveNotification(tx, scopeIds, id)
  if (revived) return { notification: notificationOf(revived), again: false }
  const [row] = await selectNotification(tx, scopeIds, id)
  if (!row) throw refuse('not_found')
  return { notification: notificationOf(row), again: true }
}

function notificationOf(row: NotificationRow): StoredNotification {
  return {
    ...{ id: row.id, appId: row.app_id, store: row.store, notificationId: row.notification_id, kind: row.kind },
    ...{ status: row.status, attempts: row.attempts, error: row.error, receivedAt: Number(row.received_at_ms) },
  }
}
