-- Events that cannot be applied, what was odd about those that were, and what ends stored rows' time.

-- The lane's transaction moves its cursor over the event and leaves it here. No position, no effect, no seen key.
create table dead_event (
  scope_id int not null,
  id bigint generated always as identity,
  stream smallint not null,                    -- as in event_log, like the four below: its place in the log
  gen int not null,
  xid xid8 not null,
  seq bigint not null,
  uuid uuid not null,
  distinct_id text not null,
  app_id text,
  received_at timestamptz not null,
  payload text not null,
  error text not null,
  error_code text,                             -- SQLSTATE, when the database refused it
  died_at timestamptz not null default clock_timestamp(),
  replayed_at timestamptz,                     -- appended to the log again
  primary key (scope_id, id)
);
create index dead_event_customer on dead_event (scope_id, distinct_id);

-- One row for each hour in which events were received that had such a warning.
create table event_warning (
  scope_id int not null,
  code text not null,
  hour timestamptz not null,
  count bigint not null,
  first_seen timestamptz not null,
  last_seen timestamptz not null,
  primary key (scope_id, code, hour)
) with (fillfactor = 70);

-- How many samples of a code were ever taken: the next one's slot.
create table event_warning_code (
  scope_id int not null,
  code text not null,
  samples bigint not null,
  primary key (scope_id, code)
) with (fillfactor = 50);

-- A ring for each code: the newest take the slots of the oldest.
create table event_warning_sample (
  scope_id int not null,
  code text not null,
  slot int not null,
  n bigint not null,                           -- counts the samples of the code
  seen_at timestamptz not null,
  uuid uuid not null,
  event text not null,
  distinct_id text not null,
  detail text,
  primary key (scope_id, code, slot)
) with (fillfactor = 50);
create index event_warning_sample_customer on event_warning_sample (scope_id, distinct_id);

-- Set where too many events could not be applied: nobody takes the lane until then. Cleared by the next slice that succeeds.
alter table lane
  add column stopped_until timestamptz,
  add column stopped_why text;

-- Days of the log that every lane has left behind, and since when.
create table event_log_passed (
  name text primary key,
  passed_at timestamptz not null default clock_timestamp()
);

-- Rows come in the order of their days: a few kilobytes find the old ones. No look-up of a uuid can use it.
create index event_seen_day on event_seen using brin (received_day);
