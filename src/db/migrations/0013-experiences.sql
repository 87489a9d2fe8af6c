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

-- A frozen draft. Its plan and its legs follow from it and the compiler's version.
create table experience_version (
  scope_id int not null,
  experience_id int not null references experience (id),
  version_number int not null,
  public_id text not null unique,
  draft text not null,
  draft_sha256 text not null,
  note text,
  created_at timestamptz not null default now(),
  primary key (scope_id, experience_id, version_number)
);

-- The last publishing number of an app: given in the transaction that publishes, so that they appear in order.
create table publish_seq (
  scope_id int not null,
  app_id text not null,
  last bigint not null,
  primary key (scope_id, app_id)
);

-- Every publication there was; what is true now is its row in publication_pointer.
create table publication (
  scope_id int not null,
  app_id text not null,
  seq bigint not null,
  id bigint generated always as identity unique,
  public_id text not null unique,
  experience_id int not null references experience (id),
  version_number int not null,
  build_id text not null,
  plan text not null,                          -- where a journey goes on after each outcome of a leg
  published_at timestamptz not null,
  published_by text not null,
  primary key (scope_id, app_id, seq)
);
create index publication_experience on publication (scope_id, experience_id, id);

create table publication_pointer (
  scope_id int not null,
  app_id text not null,
  experience_id int not null references experience (id),
  seq bigint not null,
  status text not null check (status in ('live', 'paused', 'unpublished')),
  primary key (scope_id, app_id, experience_id)
);

-- Signed bytes, delivered as they are for ever.
create table release (
  scope_id int not null,
  descriptor_sha256 text not null,
  descriptor bytea not null,
  primary key (scope_id, descriptor_sha256)
);

create table publication_leg (
  scope_id int not null,
  app_id text not null,
  seq bigint not null,
  leg_id text not null,
  locale text not null,
  descriptor_sha256 text not null,
  primary key (scope_id, app_id, seq, leg_id, locale)
);
create index publication_leg_release on publication_leg (scope_id, descriptor_sha256);

create table release_signature (
  scope_id int not null,
  descriptor_sha256 text not null,
  signing_key_id int not null references signing_key (id),
  signature bytea not null check (octet_length(signature) = 64),
  primary key (scope_id, descriptor_sha256, signing_key_id)
);
