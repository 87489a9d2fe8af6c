-- Signing keys: with what releases are signed, for each environment of a project.

create table signing_key (
  scope_id int not null,
  id int generated always as identity primary key,
  public_id text not null unique,
  key_id text not null,                        -- as envelopes name it
  public_key bytea not null check (octet_length(public_key) = 32),
  sealed_seed text,                            -- null: it only verifies
  status text not null check (status in ('staged', 'active', 'retired', 'revoked')),
  created_at timestamptz not null default now(),
  unique (scope_id, key_id)                    -- revoked ones stay: a key id means one key for ever
);

-- Which key signs for which app; '*' for every app without a row of its own.
create table signing_key_use (
  scope_id int not null,
  app_id text not null,
  signing_key_id int not null references signing_key (id),
  primary key (scope_id, app_id)
);

-- Experiences with their one mutable draft. Drafts are text: jsonb cannot hold every JSON text.
create table experience (
  scope_id int not null,
  id int generated always as identity primary key,
  public_id text not null unique,
  key text not null,
  name text not null,
  status text not null default 'draft' check (status in ('draft', 'published', 'paused', 'archived')),
  draft text,                                  -- null until the first is saved
  draft_revision int not null default 0,
  draft_updated_at timestamptz,
  last_version int not null default 0,
  created_at timestamptz not null default now(),
  unique (scope_id, key)
);
