-- Who is calling and whose data it is. Small tables, held whole in memory by every process.

create table instance (
  id int primary key check (id = 1),
  revision bigint not null default 1,          -- raised with every change of tenancy; processes compare it
  sealed_secrets text not null,                -- instance secrets (JSON), sealed under the master key
  created_at timestamptz not null default now()
);

create table users (
  id text primary key,
  email text not null,
  name text not null,
  email_verified boolean not null default false,
  password_hash text,                          -- scrypt, "<salt hex>:<key hex>"
  created_at timestamptz not null default now()
);
create unique index users_email on users (lower(email));

create table workspace (
  id text primary key,
  name text not null,
  slug text not null unique,
  logo text,
  access text not null default 'active' check (access in ('active', 'api_disabled', 'payment_required')),
  created_at timestamptz not null default now()
);

create table member (
  workspace_id text not null references workspace (id),
  user_id text not null references users (id),
  role text not null check (role in ('owner', 'admin', 'member')),
  created_at timestamptz not null default now(),
  primary key (workspace_id, user_id)
);

create table secret_key (
  id text primary key,
  workspace_id text not null references workspace (id),
  name text,
  hash bytea not null unique,                  -- SHA-256 of the whole key
  created_by_user_id text references users (id),
  created_at timestamptz not null default now(),
  expires_at timestamptz,
  last_used_at timestamptz,
  revoked_at timestamptz
);

create table project (
  id text primary key,
  workspace_id text not null references workspace (id),
  name text not null,
  created_at timestamptz not null default now(),
  deleted_at timestamptz
);
create index project_workspace on project (workspace_id, created_at);

-- One row per (project, environment): the short number that begins every key of project data, and its lane.
create table scope (
  id int generated always as identity primary key,
  project_id text not null references project (id),
  environment text not null check (environment in ('test', 'live')),
  revision bigint not null default 1,          -- of the catalogue: Features, Products, and what later joins them
  unique (project_id, environment)
);

create table app (
  id text primary key,
  project_id text not null references project (id),
  platform text not null check (platform in ('ios', 'android', 'web')),
  name text not null,
  bundle_id text,
  package_name text,
  account_token_namespace uuid not null default gen_random_uuid(),
  created_at timestamptz not null default now(),
  deleted_at timestamptz
);
create index app_project on app (project_id, created_at);

create table app_connection (
  app_id text not null references app (id),
  environment text not null,
  last_connected_at timestamptz not null,
  primary key (app_id, environment)
);

create table publishable_key (
  id text primary key,
  app_id text not null references app (id),
  environment text not null check (environment in ('test', 'live')),
  key text not null unique,
  created_at timestamptz not null default now(),
  revoked_at timestamptz,
  last_used_at timestamptz
);
create index publishable_key_app on publishable_key (app_id, environment, created_at);

create table audit_log (
  id bigint generated always as identity primary key,
  workspace_id text not null,
  actor_type text not null,
  actor_id text not null,
  action text not null,
  object text not null,
  object_id text not null,
  before_digest text,
  after_digest text,
  request_id text not null,
  at timestamptz not null default now()
);
create index audit_log_workspace on audit_log (workspace_id, id);

-- The first answer of a Workspace API POST, replayed for the same Idempotency-Key.
create table idempotency (
  workspace_id text not null,
  key text not null,
  fingerprint bytea not null,
  status int not null,
  body text not null,
  created_at timestamptz not null default now(),
  primary key (workspace_id, key)
);
create index idempotency_age on idempotency (created_at);
