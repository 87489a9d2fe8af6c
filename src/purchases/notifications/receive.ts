import type { Sql } from '../../db/pool.ts'
import type { Store, StoreApp } from '../types.ts'

export interface InboxServices {
  pool: Sql
  /** The app in the environments that have credentials of a store, live first; null: there is no such app. */
  appsOf: (appId: string, store: Store) => Promise<StoreApp[] | null>
  sealingKey: Buffer
  log: { warn: (detail: object, words: string) => void }
}

/** What sealed parts of notifications are bound to. */
export const inboxContext = 'store-inbox'
