-- Segments: their definitions, what each customer's events amount to, and who is a member.

create table segment (
  scope_id int not null references scope (id),
  id int generated always as identity,
  public_id text not null unique,
  name text not null,
  version int not null,                        -- of the newest definition
  definition jsonb not null,
  status text not null check (status in ('backfilling', 'ready', 'failed')),
  created_at timestamptz not null default clock_timestamp(),
  updated_at timestamptz not null default clock_timestamp(),
  deleted_at timestamptz,                      -- its members are still being told that they left
  primary key (scope_id, id)
);
create index segment_newest on segment (scope_id, created_at desc, public_id desc) where deleted_at is null;

-- One definition as the lane runs it. At most one of a segment is pending and one serves.
create table segment_version (
  scope_id int not null,
  id int generated always as identity,
  segment_id int not null,
  state text not null check (state in ('pending', 'serving', 'retired')),
  definition jsonb not null,
  member_count bigint not null default 0,
  primary key (scope_id, id)
);
create unique index segment_version_pending on segment_version (scope_id, segment_id) where state = 'pending';
create unique index segment_version_serving on segment_version (scope_id, segment_id) where state = 'serving';

-- What the lane looks at first. Written under the lane's row, so that a change acts at one position.
create table segment_set (
  scope_id int primary key,
  revision uuid not null default gen_random_uuid(),
  walked_to uuid,                              -- pending versions know every customer up to this one; null: nothing is pending
  settling boolean not null default false,     -- members of replaced versions are still to be told
  audited_at timestamptz not null default clock_timestamp(),
  audited bigint not null default 0,
  repaired bigint not null default 0
);

create table segment_customer (
  scope_id int not null,
  customer_id uuid not null,
  state text not null,                         -- counts, times and truths of all leaves, see customers/segments/state.ts
  primary key (scope_id, customer_id)
) partition by hash (customer_id);

-- When time alone may change what a customer is a member of; -infinity: look again at once.
create table segment_timer (
  scope_id int not null,
  customer_id uuid not null,
  due_at timestamptz not null,
  cause text not null default 'timer',
  primary key (scope_id, customer_id)
);
create index segment_timer_due on segment_timer (scope_id, due_at);

create table membership (
  scope_id int not null,
  version_id int not null,
  customer_id uuid not null,
  since timestamptz not null,
  told boolean not null,                       -- whether a change has said so
  primary key (scope_id, version_id, customer_id)
);
create index membership_newest on membership (version_id, since desc, customer_id desc);
create index membership_untold on membership (version_id) where not told;

create table membership_change (
  scope_id int not null,
  pos bigint not null,
  n int not null,
  segment_id int not null,
  customer_id uuid not null,
  edge text not null check (edge in ('entered', 'left')),
  cause text not null check (cause in ('event', 'timer', 'merge', 'backfill', 'definition', 'historical')),
  at timestamptz not null,
  primary key (scope_id, pos, n)
);
create index membership_change_age on membership_change (at);
create index membership_change_customer on membership_change (customer_id);

do $$
begin
  for i in 0..15 loop
    execute format('create table segment_customer_p%s partition of segment_customer for values with (modulus 16, remainder %s)
      with (fillfactor = 80)', i, i);
  end loop;
end $$;
