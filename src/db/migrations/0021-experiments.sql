-- Experiments: which variant of a flow a customer is shown, and who has seen it. Instants are Unix milliseconds.

create table experiment (
  scope_id int not null,
  id int generated always as identity primary key,
  public_id text not null unique,
  key text not null,
  name text not null,
  kind text not null check (kind in ('ab', 'holdout')),
  status text not null default 'draft' check (status in ('draft', 'running', 'paused', 'concluded', 'archived')),
  phase int not null default 1,
  winner_variant_id text,
  created_at timestamptz not null default now(),
  unique (scope_id, key),
  check (winner_variant_id is not null or status <> 'concluded')
);

-- What was asked in each phase. Within one, variants and their order stay.
create table experiment_phase (
  scope_id int not null,
  experiment_id int not null references experiment (id),
  phase int not null,
  seed text not null,
  variants text not null,                      -- JSON: [{id, weight, isHoldout}], the first is the control
  weight_periods text not null,                -- JSON: the weights that have held, the newest last
  coverage float8 not null,
  audience_segment_id text,
  namespace text,                              -- JSON: {id, start, end}
  metrics text not null,                       -- JSON: [{eventName, windowMs}]
  started_at_ms bigint,
  ended_at_ms bigint,
  primary key (scope_id, experiment_id, phase)
);

create table experiment_assignment (
  scope_id int not null,
  experiment_id int not null,
  phase int not null,
  customer_id uuid not null,
  variant_id text not null,
  is_holdout boolean not null,
  reason text not null check (reason in ('hash', 'merged')),
  weight_period int not null,
  assigned_at_ms bigint not null,
  crossover boolean not null default false,    -- two customers with different variants became this one
  primary key (scope_id, experiment_id, phase, customer_id)
);
create index experiment_assignment_customer on experiment_assignment (scope_id, customer_id);

-- Who was seen with a variant: what counts, and the first of what does not.
create table experiment_exposure (
  scope_id int not null,
  experiment_id int not null,
  phase int not null,
  customer_id uuid not null,
  variant_id text,                             -- of what counts; null: nothing does
  exposed_at_ms bigint,
  event_uuid uuid,                             -- null: the server's own record
  fallback_at_ms bigint,                       -- shown without an assignment
  mismatch_at_ms bigint,                       -- shown another variant than the assigned one
  primary key (scope_id, experiment_id, phase, customer_id),
  check ((variant_id is null) = (exposed_at_ms is null))
);
create index experiment_exposure_customer on experiment_exposure (scope_id, customer_id);

-- Segments that stand for conditions of an Experience over past events. They are kept like others and never listed.
alter table segment add column internal_of text;
