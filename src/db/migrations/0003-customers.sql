-- Customers, the distinct ids that name them, and what was decided about identity.

create table customer (
  scope_id int not null,
  id uuid not null,
  properties jsonb not null default '{}',
  props_at jsonb not null default '{}',        -- per key: clamped event time (ms) of its last write or unset
  identified boolean not null default false,
  created_at timestamptz not null,
  updated_at timestamptz not null default clock_timestamp(),
  version bigint not null default 1,
  generation int not null default 0,
  alias_count int not null default 1,          -- distinct ids that name it: the cap needs no count over 16 partitions
  merged_into uuid,
  primary key (scope_id, id)
) partition by hash (id);
create index customer_newest on customer (scope_id, created_at, id) where merged_into is null;

-- Not partitioned: it has no TOAST to run out of, and every hot verb would pay 2 us per look-up for 16 parts.
create table customer_alias (
  scope_id int not null,
  distinct_id text not null,
  customer_id uuid not null,
  identified boolean not null default false,
  since_pos bigint not null,
  first_seen_at timestamptz not null,
  primary key (scope_id, distinct_id) include (customer_id)
);
create index customer_alias_customer on customer_alias (scope_id, customer_id);

create table customer_tombstone (
  scope_id int not null,
  id_hash bytea not null,                      -- sha256(instance tombstone key || distinct id): names nobody
  deleted_at timestamptz not null default clock_timestamp(),
  primary key (scope_id, id_hash)
);

create table merge_journal (
  id bigint generated always as identity primary key,
  scope_id int not null,
  customer_id uuid not null,
  source_customer_id uuid,
  source_distinct_id text not null,
  target_distinct_id text not null,
  event_uuid uuid,
  pos bigint not null,
  status text not null check (status in ('merged', 'refused', 'split')),
  reason text,
  moved jsonb,                                 -- before-images and what moved, for a split
  created_at timestamptz not null default clock_timestamp()
);
create index merge_journal_customer on merge_journal (scope_id, customer_id, id);

do $$
begin
  for i in 0..15 loop
    execute format('create table customer_p%s partition of customer for values with (modulus 16, remainder %s)', i, i);
  end loop;
end $$;
