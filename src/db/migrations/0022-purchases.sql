-- Purchases in the stores: what was verified, whose it is, and what has to be told to the stores. Instants are epoch milliseconds.

-- How an app talks to a store in one environment. Secrets are sealed under a data key of the row.
create table store_credential (
  scope_id int not null,
  app_id text not null,
  kind text not null check (kind in ('appstore', 'playstore', 'stripe', 'appstore_trust', 'endpoints')),
  sealed text not null,
  wrapped_key text not null,
  key_version int not null default 1,
  public_fields jsonb not null,
  updated_at timestamptz not null default now(),
  last_success_at timestamptz,
  last_error_at timestamptz,
  last_error text,
  primary key (scope_id, app_id, kind)
);

-- What was changed from the defaults.
create table store_setting (
  scope_id int not null,
  app_id text not null,
  settings jsonb not null,
  primary key (scope_id, app_id)
);

-- Account tokens and whose they are. Public: they prove nothing to anybody but us.
create table account_binding (
  scope_id int not null,
  id bigint generated always as identity primary key,
  public_id text not null unique,
  app_id text not null,
  store text not null check (store in ('appstore', 'playstore')),
  value text not null,                         -- of the App Store in lower case
  customer_id uuid not null,
  source text not null check (source in ('rule', 'registered', 'first_claim')),
  created_at_ms bigint not null,
  unique (scope_id, app_id, store, value)
);
create index account_binding_customer on account_binding (customer_id);

-- One purchase with all its renewals and plan changes.
create table store_lineage (
  scope_id int not null,
  id bigint generated always as identity primary key,
  public_id text not null unique,
  app_id text not null,
  store text not null check (store in ('appstore', 'playstore')),
  store_environment text not null check (store_environment in ('production', 'sandbox', 'xcode')),
  root_key text not null,                      -- original transaction id; hash of the first token of a chain
  owner_customer_id uuid,
  owner_deleted boolean not null default false,
  account_token text,                          -- as the store signed it
  family_shared boolean not null default false,
  status text not null,                        -- of the newest state: what the decision tables call it
  auto_renews boolean,
  pending_product text,                        -- of the store, from the next renewal on
  version_ms bigint not null,                  -- of the newest state
  last_read_at_ms bigint,                      -- from the store
  next_check_at_ms bigint,
  unpolled boolean not null default false,     -- no API key: nothing but signed strings is known
  extra jsonb,                                 -- what only one store knows
  attached_at_ms bigint,
  created_at_ms bigint not null,
  unique (scope_id, app_id, store, store_environment, root_key)
);
create index store_lineage_owner on store_lineage (owner_customer_id, id) where owner_customer_id is not null;
create index store_lineage_token on store_lineage (scope_id, app_id, store, account_token)
  where owner_customer_id is null and account_token is not null;
create index store_lineage_check on store_lineage (next_check_at_ms) where next_check_at_ms is not null;

-- One signed transaction of the App Store, one token of Google Play.
create table store_transaction (
  scope_id int not null,
  id bigint generated always as identity primary key,
  lineage_id bigint not null,
  app_id text not null,
  store text not null,
  store_environment text not null,
  evidence_key text not null,                  -- transaction id; hex SHA-256 of the token
  version_ms bigint not null,                  -- signedDate; the instant before the read
  token_sealed text,
  superseded_by text,                          -- evidence key
  claims jsonb not null,                       -- as verified
  created_at_ms bigint not null,
  unique (scope_id, app_id, store, store_environment, evidence_key)
);
create index store_transaction_lineage on store_transaction (lineage_id);

-- What was paid for at once: a period of a subscription, or something bought once. Each gives its grants once, ever.
create table store_period (
  scope_id int not null,
  id bigint generated always as identity primary key,
  lineage_id bigint not null,
  transaction_id bigint not null,
  line text not null,                          -- '' on the App Store; product id of the line item on Google Play
  period_key text not null,                    -- transaction id; order id
  store_product_id text not null,
  base_plan_id text,
  purchase_option_id text,
  offer_id text,
  product_id text not null,                    -- of the catalogue
  type text not null check (type in ('subscription', 'one_time')),
  quantity int not null check (quantity > 0),  -- of the first grant
  refunded_quantity int not null default 0,
  order_id text,
  starts_at_ms bigint not null,
  paid_until_ms bigint,
  access_until_ms bigint,                      -- null: no end
  revoked_at_ms bigint,
  revocation jsonb,
  superseded_at_ms bigint,
  granted_to uuid,                             -- once; a transfer names the next one
  grant_ref text,                              -- source of its grants
  granted_until_ms bigint,                     -- the end its grants have; null: none
  grants_ended boolean not null default false, -- taken back: revoked, superseded or transferred
  created_at_ms bigint not null,
  unique (scope_id, transaction_id, line, period_key)
);
create index store_period_lineage on store_period (lineage_id);

-- What the first answer to a client said of the purchase itself.
create table purchase_result (
  scope_id int not null,
  app_id text not null,
  store text not null,
  store_environment text not null,
  evidence_key text not null,
  customer_id uuid not null,
  body jsonb not null,
  created_at_ms bigint not null,
  primary key (scope_id, app_id, store, store_environment, evidence_key)
);

-- Evidence that could not be attached yet, and who brought it.
create table pending_claim (
  scope_id int not null,
  app_id text not null,
  store text not null,
  store_environment text not null,
  evidence_key text not null,
  customer_id uuid,
  distinct_id text,                            -- the customer is made when the claim comes true
  reason text not null,
  store_product_id text,
  evidence_sealed text,
  due_at_ms bigint not null default 0,         -- not tried again before
  created_at_ms bigint not null,
  expires_at_ms bigint not null,
  primary key (scope_id, app_id, store, store_environment, evidence_key)
);
create index pending_claim_product on pending_claim (scope_id, store, store_product_id);

-- Notifications of stores, once each.
create table store_inbox (
  scope_id int not null,                       -- of the verified payload's lineage when it is known, else of the app
  id bigint generated always as identity primary key,
  app_id text not null,
  store text not null,
  notification_id text not null,
  trust text not null check (trust in ('live', 'test')),
  kind text not null,
  payload jsonb not null,
  received_at_ms bigint not null,
  due_at_ms bigint,                            -- null: done or dead
  attempts int not null default 0,
  status text not null default 'waiting' check (status in ('waiting', 'done', 'ignored', 'dead')),
  error text,
  unique (app_id, store, notification_id)
);
create index store_inbox_due on store_inbox (due_at_ms) where due_at_ms is not null;

-- What a store has to be told, written with what it follows from.
create table store_outbox (
  scope_id int not null,
  id bigint generated always as identity primary key,
  app_id text not null,
  store text not null,
  store_environment text not null,
  kind text not null check (kind in ('ack', 'consume', 'account_token')),
  key text not null,                           -- evidence key, or that of the lineage
  payload jsonb not null,
  due_at_ms bigint,                            -- null: done or given up
  deadline_ms bigint,
  attempts int not null default 0,
  status text not null default 'waiting' check (status in ('waiting', 'done', 'dead')),
  error text,
  created_at_ms bigint not null,
  unique (scope_id, app_id, store, store_environment, kind, key)
);
create index store_outbox_due on store_outbox (due_at_ms) where due_at_ms is not null;

create table purchase_transfer (
  scope_id int not null,
  id bigint generated always as identity primary key,
  lineage_id bigint not null,
  from_customer_id uuid,
  to_customer_id uuid not null,
  cause text not null check (cause in ('claim', 'operator')),
  actor text,
  reason text,
  at_ms bigint not null
);
create index purchase_transfer_lineage on purchase_transfer (lineage_id, id);

-- Certificates that sign for the App Store, and what is known of their revocation. Of no project: Apple's are everybody's.
create table apple_leaf (
  fingerprint text primary key,                -- hex SHA-256 of the DER
  issuer_fingerprint text,
  certificate bytea not null,
  status text not null check (status in ('unknown', 'good', 'revoked')),
  next_update_ms bigint,
  checked_at_ms bigint,
  first_seen_ms bigint not null
);

-- Time of a project's test environment runs ahead by this.
create table test_clock (
  scope_id int primary key,
  offset_ms bigint not null check (offset_ms >= 0)
);

alter table store_link
  add column duration text,                    -- ISO 8601, of a non-renewing subscription: Apple sends no end
  add column family_sharing boolean not null default false;

-- A period that a store moved: grace, leases, extensions. No units move.
alter table entry drop constraint entry_kind_check;
alter table entry add constraint entry_kind_check check (kind in
  ('grant', 'draw', 'refill', 'lapse', 'rollover', 'revoke', 'restore', 'reverse', 'shrink', 'move', 'extend'));
