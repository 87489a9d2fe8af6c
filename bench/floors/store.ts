import type pg from 'pg'
import type { PoolClient } from 'pg'

/** The naive server's tables: the nouns of the service, without its partitions, lanes and tuning. */
export const tables = `
create table publishable_key (key text primary key, scope_id int not null, platform text not null);
create table feature (scope_id int not null, id int primary key, key text not null, type text not null, unique (scope_id, key));
create table customer (
  scope_id int not null, id bigint generated always as identity primary key, distinct_id text not null,
  properties jsonb not null default '{}', created_at timestamptz not null default now(), unique (scope_id, distinct_id));
create table account (
  id bigint generated always as identity primary key, customer_id bigint not null references customer (id),
  feature_id int not null references feature (id), used_total bigint not null default 0, unique (customer_id, feature_id));
create table ledger_grant (
  id bigint generated always as identity primary key, account_id bigint not null references account (id),
  unlimited boolean not null default false, amount bigint not null, remaining bigint not null check (remaining between 0 and amount),
  effective_at timestamptz not null default now(), expires_at timestamptz, revoked_at timestamptz);
create index ledger_grant_account on ledger_grant (account_id);
create table operation (
  scope_id int not null, operation_id text not null, customer_id bigint not null, feature_key text not null, quantity bigint not null,
  accepted boolean not null, code text not null, balance bigint, unlimited boolean not null, active boolean not null,
  occurred_at timestamptz not null default now(), primary key (scope_id, operation_id));
create table entry (
  id bigint generated always as identity primary key, account_id bigint not null, grant_id bigint not null,
  operation_id text not null, delta bigint not null, remaining_after bigint not null, at timestamptz not null default now());
create index entry_account on entry (account_id, id);
create table event (
  scope_id int not null, uuid uuid not null, distinct_id text not null, event text not null,
  at timestamptz not null, received_at timestamptz not null default now(), properties jsonb not null, primary key (scope_id, uuid));
`

export interface NewEvent {
  uuid: string
  distinct_id: string
  event: string
  timestamp?: string
  properties?: { $set?: Record<string, unknown> } & Record<string, unknown>
}

export interface Standing {
  customerId: string | null
  accountId: string | null
  type: string
  live: boolean
  unlimited: boolean
  balance: number
}

export interface Key {
  scope_id: number
  platform: string
}

export async function readKey(pool: pg.Pool, key: string): Promise<Key | undefined> {
  const { rows } = await pool.query<Key>('select scope_id, platform from publishable_key where key = $1', [key])
  return rows[0]
}

/** Stores one event and its customer; a repeated uuid is stored once. One statement is one transaction. */
export async function addEvent(sql: pg.Pool | PoolClient, scopeId: number, event: NewEvent): Promise<void> {
  const set = event.properties?.$set
  await sql.query({
    // Without directives the customer's row is only made, not rewritten.
    name: set ? 'add-event-set' : 'add-event',
    text: `
      with customer as (
        insert into customer (scope_id, distinct_id, properties) values ($1, $2, $3::jsonb)
        on conflict (scope_id, distinct_id)
        ${set ? 'do update set properties = customer.properties || excluded.properties' : 'do nothing'}
      )
      insert into event (scope_id, uuid, distinct_id, event, at, properties)
      values ($1, $4, $2, $5, coalesce($6::timestamptz, now()), $7::jsonb)
      on conflict do nothing`,
    values: [
      scopeId,
      event.distinct_id,
      JSON.stringify(set ?? {}),
      event.uuid,
      event.event,
      event.timestamp ?? null,
      JSON.stringify(event.properties ?? {}),
    ],
  })
}

/** Stores a batch with three statements, whatever its size. */
export async function addEvents(client: PoolClient, scopeId: number, events: NewEvent[]): Promise<void> {
  // Sorted, so that two batches never wait for each other's rows in a circle.
  const ids = [...new Set(events.map((event) => event.distinct_id))].toSorted()
  await client.query({
    name: 'add-customers',
    text: `
      insert into customer (scope_id, distinct_id) select $1, unnest($2::text[])
      on conflict do nothing`,
    values: [scopeId, ids],
  })
  const sets = new Map<string, Record<string, unknown>>()
  for (const { distinct_id, properties } of events) {
    if (properties?.$set) sets.set(distinct_id, { ...sets.get(distinct_id), ...properties.$set })
  }
  await client.query({
    name: 'set-properties',
    text: `
      with changed as (
        select c.id, s.properties from unnest($2::text[], $3::jsonb[]) as s (distinct_id, properties)
        join customer c on c.scope_id = $1 and c.distinct_id = s.distinct_id order by c.id for update of c
      )
      update customer c set properties = c.properties || changed.properties from changed where c.id = changed.id`,
    values: [scopeId, [...sets.keys()], [...sets.values()].map((set) => JSON.stringify(set))],
  })
  await client.query({
    name: 'add-events',
    text: `
      insert into event (scope_id, uuid, distinct_id, event, at, properties)
      select $1, e.uuid, e.distinct_id, e.event, coalesce(e.at, now()), e.properties
      from unnest($2::uuid[], $3::text[], $4::text[], $5::timestamptz[], $6::jsonb[]) as e (uuid, distinct_id, event, at, properties)
      on conflict do nothing`,
    values: [
      scopeId,
      events.map((event) => event.uuid),
      events.map((event) => event.distinct_id),
      events.map((event) => event.event),
      events.map((event) => event.timestamp ?? null),
      events.map((event) => JSON.stringify(event.properties ?? {})),
    ],
  })
}

/** What a customer holds of a Feature now; undefined when there is no such Feature. */
export async function readStanding(
  sql: pg.Pool | PoolClient,
  scopeId: number,
  distinctId: string,
  featureKey: string,
): Promise<Standing | undefined> {
  const { rows } = await sql.query<Omit<Standing, 'balance'> & { balance: string }>({
    name: 'read-standing',
    text: `
      select c.id as "customerId", a.id as "accountId", f.type,
        count(g.id) > 0 as live, coalesce(bool_or(g.unlimited), false) as unlimited, coalesce(sum(g.remaining), 0) as balance
      from feature f
      left join customer c on c.scope_id = f.scope_id and c.distinct_id = $2
      left join account a on a.customer_id = c.id and a.feature_id = f.id
      left join ledger_grant g on g.account_id = a.id and g.revoked_at is null
        and g.effective_at <= now() and (g.expires_at is null or g.expires_at > now())
      where f.scope_id = $1 and f.key = $3
      group by c.id, a.id, f.type`,
    values: [scopeId, distinctId, featureKey],
  })
  const row = rows[0]
  return row && { ...row, balance: Number(row.balance) }
}

export interface Operation {
  operation_id: string
  accepted: boolean
  code: string
  quantity: number
  balance: number | null
  unlimited: boolean
  active: boolean
  occurred_at_ms: number
}

export async function lockAccount(client: PoolClient, accountId: string): Promise<void> {
  await client.query({
    name: 'lock-account',
    text: 'select id from account where id = $1 for update',
    values: [accountId],
  })
}

export async function readOperation(client: PoolClient, scopeId: number, id: string): Promise<Operation | undefined> {
  const { rows } = await client.query<Operation>({
    name: 'read-operation',
    text: `
      select operation_id, accepted, code, quantity::float8 as quantity, balance::float8 as balance, unlimited, active,
        floor(extract(epoch from occurred_at) * 1000)::float8 as occurred_at_ms
      from operation where scope_id = $1 and operation_id = $2`,
    values: [scopeId, id],
  })
  return rows[0]
}

export interface LiveGrant {
  id: string
  unlimited: boolean
  remaining: number
}

/** What can be spent now, what ends first first. */
export async function readGrants(client: PoolClient, accountId: string): Promise<LiveGrant[]> {
  const { rows } = await client.query<LiveGrant>({
    name: 'read-grants',
    text: `
      select id, unlimited, remaining::float8 as remaining from ledger_grant
      where account_id = $1 and revoked_at is null and effective_at <= now() and (expires_at is null or expires_at > now())
      order by expires_at nulls last, id`,
    values: [accountId],
  })
  return rows
}

export async function debit(client: PoolClient, grantId: string, units: number): Promise<number> {
  const { rows } = await client.query<{ remaining: string }>({
    name: 'debit',
    text: 'update ledger_grant set remaining = remaining - $2 where id = $1 returning remaining',
    values: [grantId, units],
  })
  return Number(rows[0]?.remaining)
}

export async function addEntry(
  client: PoolClient,
  entry: { accountId: string; grantId: string; operationId: string; delta: number; remaining: number },
): Promise<void> {
  await client.query({
    name: 'add-entry',
    text: 'insert into entry (account_id, grant_id, operation_id, delta, remaining_after) values ($1, $2, $3, $4, $5)',
    values: [entry.accountId, entry.grantId, entry.operationId, entry.delta, entry.remaining],
  })
}

export async function addUsed(client: PoolClient, accountId: string, units: number): Promise<void> {
  await client.query({
    name: 'add-used',
    text: 'update account set used_total = used_total + $2 where id = $1',
    values: [accountId, units],
  })
}

export async function addOperation(
  client: PoolClient,
  scopeId: number,
  customerId: string,
  featureKey: string,
  operation: Omit<Operation, 'occurred_at_ms'>,
): Promise<number> {
  const { operation_id, quantity, accepted, code, balance, unlimited, active } = operation
  const { rows } = await client.query<{ at: number }>({
    name: 'add-operation',
    text: `
      insert into operation (scope_id, operation_id, customer_id, feature_key, quantity, accepted, code, balance, unlimited, active)
      values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
      returning floor(extract(epoch from occurred_at) * 1000)::float8 as at`,
    values: [scopeId, operation_id, customerId, featureKey, quantity, accepted, code, balance, unlimited, active],
  })
  return rows[0]?.at ?? 0
}

export interface CustomerRow {
  /** An int8, as text. */
  id: string
  distinct_id: string
  properties: Record<string, unknown>
  created_at: Date
}

export async function readCustomers(pool: pg.Pool, scopeId: number, distinctId: string): Promise<CustomerRow[]> {
  const { rows } = await pool.query<CustomerRow>({
    name: 'read-customers',
    text: `
      select id, distinct_id, properties, created_at
      from customer
      where scope_id = $1 and distinct_id = $2`,
    values: [scopeId, distinctId],
  })
  return rows
}

export interface ProfileRow {
  properties: Record<string, unknown>
  features: { id: string; type: string; balance: number | null; unlimited: boolean }[]
}

export async function readProfile(pool: pg.Pool, scopeId: number, distinctId: string): Promise<ProfileRow | undefined> {
  const { rows } = await pool.query<ProfileRow>({
    name: 'read-profile',
    text: `
      select c.properties, coalesce((
        select json_agg(json_build_object('id', held.key, 'type', held.type, 'unlimited', held.unlimited,
          'balance', case when held.unlimited or held.type = 'boolean' then null else held.balance end) order by held.key)
        from (
          select f.key, f.type, bool_or(g.unlimited) as unlimited, sum(g.remaining) as balance
          from account a
          join feature f on f.id = a.feature_id
          join ledger_grant g on g.account_id = a.id and g.revoked_at is null
            and g.effective_at <= now() and (g.expires_at is null or g.expires_at > now())
          where a.customer_id = c.id
          group by f.key, f.type
        ) held), '[]') as features
      from customer c where c.scope_id = $1 and c.distinct_id = $2`,
    values: [scopeId, distinctId],
  })
  return rows[0]
}
