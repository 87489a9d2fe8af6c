import type { Sql, Tx } from '../../db/pool.ts'
import type { Page } from '../../kernel/page.ts'
import type { Scope } from '../../tenancy/index.ts'
import type { Announced } from '../announce/announce.ts'

/** Where webhooks of journeys go, and what else it hears of. */
export interface WebhookEndpoint {
  scopeId: number
  publicId: string
  name: string
  url: string
  events: Announced[]
  createdAt: Date
  updatedAt: Date
}

/** What its owner says of it. */
export type EndpointTerms = Pick<WebhookEndpoint, 'name' | 'url' | 'events'>

interface EndpointRow {
  scope_id: number
  public_id: string
  name: string
  url: string
  events: Announced[]
  created_at: Date
  updated_at: Date
}

const columns = 'scope_id, public_id, name, url, events, created_at, updated_at'

function endpointOf(row: EndpointRow): WebhookEndpoint {
  return {
    ...{ scopeId: row.scope_id, publicId: row.public_id, name: row.name, url: row.url, events: row.events },
    ...{ createdAt: row.created_at, updatedAt: row.updated_at },
  }
}

export async function insertEndpoint(
  tx: Tx,
  scope: Scope,
  { publicId, name, url, events, sealedSecret }: EndpointTerms & { publicId: string; sealedSecret: string },
): Promise<WebhookEndpoint[]> {
  const rows = await tx.query<EndpointRow>(
    `insert into webhook_endpoint (scope_id, public_id, name, url, events, sealed_secret)
     values ($1, $2, $3, $4, $5, $6)
     returning ${columns}`,
    [scope.scopeId, publicId, name, url, events, sealedSecret],
  )
  return rows.map(endpointOf)
}

/** Whoever adds one counts them first: nobody else adds one to the scope meanwhile. */
export async function lockEndpoints(tx: Tx, { scopeId }: Scope): Promise<number> {
  await tx.query('select id from scope where id = $1 for no key update', [scopeId])
  const [row] = await tx.query<{ n: bigint }>(
    'select count(*) as n from webhook_endpoint where scope_id = $1 and deleted_at is null',
    [scopeId],
  )
  return Number(row?.n ?? 0)
}

export async function selectEndpoint(
  sql: Sql,
  scopes: Scope[],
  publicId: string,
  { lock }: { lock: boolean },
): Promise<WebhookEndpoint | undefined> {
  const rows = await sql.query<EndpointRow>(
    `select ${columns}
     from webhook_endpoint
     where scope_id = any($1)
       and public_id = $2
       and deleted_at is null
     ${lock ? 'for update' : ''}`,
    [scopes.map(({ scopeId }) => scopeId), publicId],
  )
  return rows.map(endpointOf)[0]
}

/** Newest first. */
export async function selectEndpoints(sql: Sql, scope: Scope, { limit, after }: Page): Promise<WebhookEndpoint[]> {
  const rows = await sql.query<EndpointRow>(
    `select ${columns}
     from webhook_endpoint
     where scope_id = $1
       and deleted_at is null
       and ($2::text is null or id < (select id from webhook_endpoint where public_id = $2))
     order by id desc
     limit $3`,
    [scope.scopeId, after, limit],
  )
  return rows.map(endpointOf)
}

export async function updateEndpoint(
  tx: Tx,
  { scopeId, publicId }: WebhookEndpoint,
  { name, url, events, sealedSecret }: EndpointTerms & { sealedSecret: string | null },
): Promise<WebhookEndpoint[]> {
  const rows = await tx.query<EndpointRow>(
    `update webhook_endpoint
     set name = $3, url = $4, events = $5, sealed_secret = coalesce($6, sealed_secret), updated_at = clock_timestamp()
     where scope_id = $1
       and public_id = $2
     returning ${columns}`,
    [scopeId, publicId, name, url, events, sealedSecret],
  )
  return rows.map(endpointOf)
}

/** Its row stays, without the secret: lists begin behind it. */
export async function deleteEndpointRow(tx: Tx, { scopeId, publicId }: WebhookEndpoint): Promise<void> {
  await tx.query(
    `update webhook_endpoint
     set deleted_at = clock_timestamp(), sealed_secret = ''
     where scope_id = $1
       and public_id = $2`,
    [scopeId, publicId],
  )
}

/** What is needed to send to it; undefined: there is none any more. */
export async function selectTarget(
  sql: Sql,
  scopeId: number,
  publicId: string,
): Promise<{ url: string; sealedSecret: string } | undefined> {
  const rows = await sql.query<{ url: string; sealedSecret: string }>(
    `select url, sealed_secret as "sealedSecret"
     from webhook_endpoint
     where scope_id = $1
       and public_id = $2
       and deleted_at is null`,
    [scopeId, publicId],
  )
  return rows[0]
}
