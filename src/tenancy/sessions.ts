import { hash } from 'node:crypto'
import type { Sql } from '../db/pool.ts'
import { deleteExpired, deleteSession, selectSession } from './session-store.ts'
import type { Session } from './types.ts'

/** How session and reset tokens are stored: who reads the database can't act for anyone. */
export function hashToken(token: string): string {
  return hash('sha256', token, 'base64url')
}

/**
 * The live session of a bearer token, and what its user is in `workspaceId`. Read anew for each request: an ended session
 * and a removed member are refused from the next one on, in every process. A token is looked up by its hash, so that the
 * time of the look-up tells nothing of it.
 */
export function findSession(sql: Sql, token: string, workspaceId: string | null): Promise<Session | undefined> {
  return selectSession(sql, hashToken(token), workspaceId)
}

export function endSession(sql: Sql, sessionId: string): Promise<void> {
  return deleteSession(sql, sessionId)
}

/** Sessions, tokens and counted attempts whose time is over. */
export function forgetExpired(sql: Sql): Promise<void> {
  return deleteExpired(sql)
}
