import type { Tx } from '../db/pool.ts'

/** Held to the end of the transaction: one process sets an empty database up, the others wait and find it done. */
const setupLockKey = 7_210_002

/** True when no workspace exists; nobody else can make the first one before the transaction ends. */
export async function lockIfEmpty(tx: Tx): Promise<boolean> {
  await tx.query(`select pg_advisory_xact_lock($1)`, [setupLockKey])
  const found = await tx.query(`select 1 from workspace limit 1`)
  return found.length === 0
}

export async function insertVerifiedUser(
  tx: Tx,
  user: { id: string; email: string; name: string; credentialId: string; passwordHash: string },
): Promise<void> {
  await tx.query(
    `insert into users (id, email, name, email_verified)
     values ($1, $2, $3, true)`,
    [user.id, user.email, user.name],
  )
  await tx.query(
    `insert into user_credential (id, user_id, provider_id, account_id, password)
     values ($1, $2, 'credential', $2, $3)`,
    [user.credentialId, user.id, user.passwordHash],
  )
}

export async function insertWorkspace(
  tx: Tx,
  workspace: { id: string; name: string; slug: string; ownerId: string },
): Promise<void> {
  await tx.query(`insert into workspace (id, name, slug) values ($1, $2, $3)`, [
    workspace.id,
    workspace.name,
    workspace.slug,
  ])
  await tx.query(`insert into member (workspace_id, user_id, role) values ($1, $2, 'owner')`, [
    workspace.id,
    workspace.ownerId,
  ])
}

export async function insertSecretKey(
  tx: Tx,
  key: { id: string; workspaceId: string; name: string; hash: Buffer; createdByUserId: string },
): Promise<void> {
  await tx.query(
    `insert into secret_key (id, workspace_id, name, hash, created_by_user_id)
     values ($1, $2, $3, $4, $5)`,
    [key.id, key.workspaceId, key.name, key.hash, key.createdByUserId],
  )
}
