-- Features, Products, grants and the ledger. Ledger instants are epoch milliseconds, units are bigint.

create table feature (
  scope_id int not null,
  id int generated always as identity primary key,
  public_id text not null unique,
  key text not null,
  name text not null,
  type text not null check (type in ('boolean', 'metered', 'creditSystem')),
  platforms text[],
  scale smallint not null default 0 check (scale between 0 and 6),
  status text not null check (status in ('draft', 'published', 'archived')),
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  unique (scope_id, key)
);

-- Cost of one unit of the member = credits / per.
create table feature_cost (
  credit_feature_id int not null references feature (id),
  member_feature_id int not null references feature (id),
  credits bigint not null check (credits > 0),
  per bigint not null check (per > 0),
  primary key (credit_feature_id, member_feature_id)
);

create table product (
  scope_id int not null,
  id text primary key,
  key text not null,
  name text not null,
  type text not null check (type in ('subscription', 'one_time')),
  grants jsonb not null,                       -- grant templates; a grant copies its terms when it is made
  status text not null check (status in ('active', 'archived')),
  version int not null default 1,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  unique (scope_id, key)
);

create table store_link (
  scope_id int not null,
  store text not null check (store in ('appstore', 'playstore')),
  store_product_id text not null,
  base_plan_id text,
  purchase_option_id text,
  offer_id text,
  consumable boolean not null default false,
  product_id text not null references product (id),
  unique nulls not distinct (scope_id, store, store_product_id, base_plan_id, purchase_option_id, offer_id)
);

-- (customer, Feature): the lock, the clock, the version and the usage counter.
create table account (
  id bigint generated always as identity primary key,
  scope_id int not null,
  customer_id uuid not null,
  feature_id int not null,
  used_total bigint not null default 0 check (used_total >= 0),
  last_at_ms bigint not null default 0,
  version bigint not null default 0,
  merged_into bigint,
  unique (scope_id, customer_id, feature_id)
) with (fillfactor = 60, autovacuum_vacuum_scale_factor = 0.01);
create index account_merged on account (merged_into) where merged_into is not null;

create table account_entity (
  account_id bigint not null,
  entity_id text not null,
  used_total bigint not null default 0 check (used_total >= 0),
  registered boolean not null default false,
  primary key (account_id, entity_id)
) with (fillfactor = 60);

create table ledger_grant (
  id bigint generated always as identity primary key,
  scope_id int not null,
  account_id bigint not null,
  feature_id int not null,
  entity_id text,
  source_ref text not null,
  origin text not null check (origin in ('product', 'purchase', 'manual', 'journey', 'rollover')),
  rank smallint not null default 0,            -- 0 recurring, free or given; 1 purchased
  unlimited boolean not null default false,
  amount bigint not null default 0,            -- units of the Feature; credits times 10^scale for a credit system
  remaining bigint not null default 0,
  effective_at_ms bigint not null,
  expires_at_ms bigint,
  paid_until_ms bigint,
  cycle_unit text check (cycle_unit in ('minute', 'hour', 'day', 'week', 'month', 'quarter', 'semiAnnual', 'year')),
  cycle_count int not null default 1,
  anchor_ms bigint not null,
  period_no bigint not null default 0,
  rollover jsonb,
  rolled_from bigint,                          -- the grant whose period left these units
  product_id text,
  note text,
  revoked_at_ms bigint,
  uncollected bigint not null default 0,
  settled boolean not null default false,
  created_at_ms bigint not null,
  check (remaining between 0 and amount),
  unique nulls not distinct (scope_id, source_ref, feature_id, entity_id)
) with (fillfactor = 60, autovacuum_vacuum_scale_factor = 0.01);

-- No column that a debit changes is indexed or named in an index predicate: debits stay heap-only updates.
create index ledger_grant_account on ledger_grant (account_id) where not settled;
-- For lists and merges, which want the settled ones too.
create index ledger_grant_settled on ledger_grant (account_id) where settled;

-- Exactly-once guard of a period's refill.
create table refill (
  grant_id bigint not null,
  period_no bigint not null,
  lapsed bigint not null,
  rolled bigint not null,
  at_ms bigint not null,
  primary key (grant_id, period_no)
);

-- One row per decided command: the saved answer is what is replayed. Insert only.
create table operation (
  scope_id int not null,
  kind smallint not null,                      -- 0 consume, 1 reversal
  operation_id text not null,
  customer_id uuid not null,
  feature_key text not null,
  entity_id text,
  mode smallint not null,                      -- 0 consume, 1 set_usage
  quantity bigint not null,
  evidence_key text,                           -- identity of the verified purchase that came with the command
  http_status smallint not null,
  accepted boolean not null,
  code text not null,
  feature_type smallint not null,
  balance bigint,
  unlimited boolean not null,
  active boolean not null,
  occurred_at_ms bigint not null,
  account_version bigint not null,
  primary key (scope_id, kind, operation_id)
);

-- Append-only movements; partitions by month of at_ms are made by entitlements/partitions.ts.
create table entry (
  at_ms bigint not null,
  scope_id int not null,
  account_id bigint not null,
  version bigint not null,
  line smallint not null,
  grant_id bigint not null,
  period_no bigint not null,
  kind text not null check (kind in ('grant', 'draw', 'refill', 'lapse', 'rollover', 'revoke', 'restore', 'reverse', 'shrink', 'move')),
  delta bigint not null,
  remaining_after bigint not null,
  operation_id text,
  detail jsonb
) partition by range (at_ms);
create index entry_account on entry (account_id, version);
