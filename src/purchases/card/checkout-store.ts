import type { Sql, Tx } from '../../db/pool.ts'
import type { Scope } from '../../tenancy/index.ts'
import { ms } from '../lineage-store.ts'
import type { Ms } from '../types.ts'

/** The last payment page of a command. */
export interface CheckoutRow {
  publicId: string
  page: { id: string; url: string; expiresAt: Ms } | null
  completedAt: Ms | null
  createdAt: Ms
}

interface Row {
  public_id: string
  session_id: string | null
  url: string | null
  expires_at_ms: bigint | null
  completed_at_ms: bigint | null
  created_at_ms: bigint
}

function checkoutOf(row: Row): CheckoutRow {
  const { session_id: id, url } = row
  const expiresAt = ms(row.expires_at_ms)
  return {
    publicId: row.public_id,
    page: id === null || url === null || expiresAt === null ? null : { id, url, expiresAt },
    completedAt: ms(row.completed_at_ms),
    createdAt: Number(row.created_at_ms),
  }
}

interface Which {
  appId: string
  commandHash: string
}

/** Made when there is none; locked either way. `isNew`: it was made with this id. */
export async function lockCheckout(
  tx: Tx,
  scope: Scope,
  { appId, commandHash, publicId, now }: Which & { publicId: string; now: Ms },
): Promise<{ checkout: CheckoutRow; isNew: boolean }> {
  const rows = await tx.query<Row>(
    `insert into checkout_session as c (scope_id, public_id, app_id, command_hash, created_at_ms)
     values ($1, $2, $3, $4, $5)
     on conflict (scope_id, app_id, command_hash) do update
     set command_hash = excluded.command_hash
     returning public_id, session_id, url, expires_at_ms, completed_at_ms, created_at_ms`,
    [scope.scopeId, publicId, appId, commandHash, now],
  )
  const [checkout] = rows.map(checkoutOf)
  if (!checkout) throw new Error('the row was written')
  return { checkout, isNew: checkout.publicId === publicId }
}

/** The page before is over: the command opens another one. */
export async function renewCheckout(
  tx: Tx,
  scope: Scope,
  { appId, commandHash, publicId, now }: Which & { publicId: string; now: Ms },
): Promise<void> {
  await tx.query(
    `update checkout_session
     set public_id = $4, session_id = null, url = null, expires_at_ms = null, completed_at_ms = null, created_at_ms = $5
     where scope_id = $1
       and app_id = $2
       and command_hash = $3`,
    [scope.scopeId, appId, commandHash, publicId, now],
  )
}

export async function keepPage(
  sql: Sql,
  scope: Scope,
  publicId: string,
  page: { id: string; url: string; expiresAt: Ms },
): Promise<void> {
  await sql.query(
    `update checkout_session
     set session_id = $3, url = $4, expires_at_ms = $5
     where scope_id = $1
       and public_id = $2`,
    [scope.scopeId, publicId, page.id, page.url, page.expiresAt],
  )
}

/** It was paid, or Stripe would not open it: the command opens another one next time, unless it is to have the paid one. */
export async function completeCheckout(sql: Sql, scope: Scope, publicId: string, now: Ms): Promise<void> {
  await sql.query(
    `update checkout_session
     set completed_at_ms = coalesce(completed_at_ms, $3)
     where scope_id = $1
       and public_id = $2`,
    [scope.scopeId, publicId, now],
  )
}
