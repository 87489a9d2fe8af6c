import type { PoolClient } from 'pg'
import * as store from './store.ts'

export interface Spend {
  customerId: string
  featureId: string
  operationId: string
  quantity: number
}

/** Decides and writes in the caller's transaction; undefined when there is no such Feature. */
export async function spend(
  client: PoolClient,
  scopeId: number,
  { customerId, featureId, operationId, quantity }: Spend,
) {
  const standing = await store.readStanding(client, scopeId, customerId, featureId)
  if (!standing) return undefined
  const { customerId: customer, accountId: account, type } = standing
  const echo = { operationId, customerId, featureId, type }
  if (customer === null || account === null) {
    return { ...echo, accepted: false, code: 'access_inactive', idempotentReplay: false }
  }

  // Under the lock: two copies of one operation must not both find nothing.
  await store.lockAccount(client, account)
  const saved = await store.readOperation(client, scopeId, operationId)
  if (saved) return { ...echo, ...shown(saved), idempotentReplay: true }

  const grants = await store.readGrants(client, account)
  const unlimited = grants.some((grant) => grant.unlimited)
  const before = grants.reduce((sum, grant) => sum + grant.remaining, 0)
  const accepted = unlimited || before >= quantity
  const balance = unlimited ? null : before - (accepted ? quantity : 0)
  const code = accepted ? 'consumed' : grants.length > 0 ? 'insufficient_balance' : 'access_inactive'
  if (accepted && !unlimited) await draw(client, { accountId: account, operationId, grants, quantity })
  if (accepted) await store.addUsed(client, account, quantity)
  const active = unlimited || (balance ?? 0) > 0
  const operation = { operation_id: operationId, accepted, code, quantity, balance, unlimited, active }
  const at = await store.addOperation(client, scopeId, customer, featureId, operation)
  return { ...echo, ...shown({ ...operation, occurred_at_ms: at }), idempotentReplay: false }
}

interface Draw {
  accountId: string
  operationId: string
  grants: store.LiveGrant[]
  quantity: number
}

async function draw(client: PoolClient, { accountId, operationId, grants, quantity }: Draw): Promise<void> {
  let left = quantity
  for (const grant of grants) {
    const part = Math.min(left, grant.remaining)
    if (part === 0) continue
    const remaining = await store.debit(client, grant.id, part)
    await store.addEntry(client, { accountId, grantId: grant.id, operationId, delta: -part, remaining })
    left -= part
  }
}

function shown({ accepted, code, quantity, balance, unlimited, active, occurred_at_ms }: store.Operation) {
  return { accepted, code, quantity, balance, unlimited, active, occurredAtMs: occurred_at_ms }
}
