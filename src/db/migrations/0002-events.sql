-- The durable log, its lanes, and the events they produced. Partitions are made by events/partitions.ts.

create table log_meta (
  id int primary key check (id = 1),
  gen int not null,                            -- raised when transaction ids start again (restore into another cluster)
  system_identifier text not null,
  last_xid xid8 not null
);

-- Append only, no unique index, no trigger: duplicates enter cheaply and the lane removes them.
create table event_log (
  lane int not null,
  stream smallint not null,                    -- 0 live, 1 historical
  gen int not null default 1,                  -- the default is altered when log_meta.gen is raised
  xid xid8 not null default pg_current_xact_id(),
  seq bigint generated always as identity,
  logged_at timestamptz not null default clock_timestamp(),
  kind smallint not null default 0,            -- 0 event
  uuid uuid not null,
  distinct_id text not null,
  app_id text,
  received_at timestamptz not null,
  payload text not null                        -- the normalised event as JSON
) partition by range (logged_at);
create index event_log_cursor on event_log (lane, stream, gen, xid, seq);

create table lane (
  id int primary key references scope (id),
  owner text,
  lease_until timestamptz not null default '-infinity',
  fence bigint not null default 0,
  pos bigint not null default 0,               -- position of the newest applied event or command
  live_gen int not null default 0,
  live_xid xid8 not null default '0',
  live_seq bigint not null default 0,
  live_logged_at timestamptz not null default '-infinity',
  historical_gen int not null default 0,
  historical_xid xid8 not null default '0',
  historical_seq bigint not null default 0,
  historical_logged_at timestamptz not null default '-infinity',
  as_of timestamptz
) with (fillfactor = 50);

-- Written in the transaction of the effects, never before them.
create table event_seen (
  scope_id int not null,
  uuid uuid not null,
  pos bigint not null,
  received_day date not null,
  body_hash bigint not null,
  primary key (scope_id, uuid)
) partition by hash (uuid);

create table event (
  scope_id int not null,
  pos bigint not null,
  uuid uuid not null,
  customer_id uuid not null,
  distinct_id text not null,
  app_id text,
  event text not null,
  ts timestamptz not null,
  received_at timestamptz not null,
  value double precision,
  entity_id text,
  props jsonb not null,
  trust smallint not null,                     -- 0 device, 1 server
  recognised boolean not null,
  historical boolean not null,
  merge jsonb,                                 -- {status, reason} of an identify
  journey_origin jsonb,                        -- unverified claim of the device
  warnings jsonb,
  primary key (scope_id, pos, received_at)
) partition by range (received_at);

-- Changes of identity or properties that came from the Workspace API, at their position in the lane.
create table command (
  scope_id int not null,
  pos bigint not null,
  kind text not null,
  body jsonb not null,
  at timestamptz not null default clock_timestamp(),
  primary key (scope_id, pos)
);

do $$
begin
  for i in 0..15 loop
    execute format('create table event_seen_p%s partition of event_seen for values with (modulus 16, remainder %s)', i, i);
  end loop;
end $$;
