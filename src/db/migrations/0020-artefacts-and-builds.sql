-- What the content of a project may ask of devices, and whether clients know the entry condition "always".
alter table project
  add column deliver_always boolean,           -- null: as the namespace says
  add column client_runtime jsonb;             -- null: nothing with screens can be published

-- Placeholders for what the store says of a Product, as far as its author gave them.
alter table product add column preview jsonb;

-- Uploaded files. The bytes lie in pieces, so that neither writing nor reading holds a file in memory, and a transaction that
-- waits for a slow sender is never open: a blob is written piece by piece, and nobody sees it before an artefact names it.
create table artefact_blob (
  id bigint generated always as identity primary key,
  created_at timestamptz not null default now()
);
create index artefact_blob_created on artefact_blob (created_at);

create table artefact_piece (
  blob_id bigint not null references artefact_blob (id) on delete cascade,
  n int not null,
  bytes bytea not null,
  primary key (blob_id, n)
);
alter table artefact_piece alter column bytes set storage external; -- they are compressed already

create table artefact (
  project_id text not null references project (id),
  sha256 text not null,
  content_type text not null,
  size_bytes bigint not null,
  blob_id bigint not null references artefact_blob (id),
  created_at timestamptz not null default now(),
  primary key (project_id, sha256, content_type)
);
create index artefact_address on artefact (sha256, content_type);
create index artefact_blob_of on artefact (blob_id);

-- What a version was compiled to for an app. An older version is made live with the build that it had.
create table experience_build (
  scope_id int not null,
  id bigint generated always as identity unique,
  build_id text not null,
  app_id text not null,
  experience_id int not null references experience (id),
  version_number int not null,
  compiler_version text not null,
  locales text[] not null,
  plan text not null,
  products text not null,                      -- of the placements, with the store texts that were copied
  created_at timestamptz not null default now(),
  primary key (scope_id, build_id)
);
create index experience_build_version on experience_build (scope_id, experience_id, version_number, app_id, id);

-- Descriptors without identity. One row for all locales in which the leg is the same.
create table experience_build_leg (
  scope_id int not null,
  build_id text not null,
  leg_id text not null,
  section_key text not null,
  locales text[] not null,
  body text not null,
  primary key (scope_id, build_id, leg_id, locales),
  foreign key (scope_id, build_id) references experience_build (scope_id, build_id)
);
