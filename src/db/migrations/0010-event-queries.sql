-- Reading events: indexes, counts kept ready, what names and properties there are, questions asked apart, and exports.

-- Newest first, of everything, of one name, of one customer; pos decides between equal times. The second also counts
-- customers and walks funnels without reading rows.
create index event_time on event (scope_id, ts, pos);
create index event_name_time on event (scope_id, event, ts, pos) include (customer_id);
create index event_customer_time on event (scope_id, customer_id, ts, pos);

-- Slots of 15 minutes, since zones with :30 and :45 exist. Written with the rows it counts, in the same transaction.
create table event_rollup (
  scope_id int not null,
  event text not null,
  slot timestamptz not null,
  app_id text not null,                        -- '' for a backend
  count bigint not null,
  valued bigint not null,                      -- events that have a value
  value_sum double precision,                  -- null: beyond what can be added up; the rows are asked then
  primary key (scope_id, event, slot, app_id)
) with (fillfactor = 70);

-- One row more than is shown says that there are more.
create table event_name (
  scope_id int not null,
  event text not null,
  first_seen timestamptz not null,
  last_seen timestamptz not null,              -- to the hour
  primary key (scope_id, event)
);
create table event_property (
  scope_id int not null,
  event text not null,
  property text not null,
  types smallint not null,                     -- bits: 1 string, 2 number, 4 boolean, 8 null, 16 array, 32 object
  last_seen timestamptz not null,              -- to the hour
  primary key (scope_id, event, property)
);

-- Queries whose answers are fetched later.
create table event_query (
  id text primary key,
  scope_id int not null,
  status text not null check (status in ('running', 'completed', 'failed')),
  result text,
  error jsonb,
  created_at timestamptz not null default clock_timestamp()
);
create index event_query_created on event_query (created_at);

create table event_export (
  id text primary key,
  scope_id int not null,
  status text not null check (status in ('pending', 'running', 'completed', 'failed')),
  start_at timestamptz,                        -- a time range, or none
  end_at timestamptz,
  events text[],                               -- null: all names
  from_position bigint not null,               -- exclusive
  to_position bigint not null,                 -- inclusive
  position bigint not null,                    -- written up to here
  error text,
  owner text,
  lease_until timestamptz not null default '-infinity',
  tries int not null default 0,
  created_at timestamptz not null default clock_timestamp(),
  completed_at timestamptz
);
create index event_export_created on event_export (created_at);
create index event_export_open on event_export (lease_until) where status in ('pending', 'running');

create table event_export_file (
  export_id text not null references event_export (id) on delete cascade,
  n int not null,
  rows int not null,
  sha256 bytea not null,
  bytes bytea not null,                        -- one gzip member
  primary key (export_id, n)
);
alter table event_export_file alter column bytes set storage external;

-- Milliseconds of an ISO 8601 time by the rules of the event field `timestamp`, or null: filters compare times as such.
create function event_instant(given text) returns double precision
language plpgsql immutable strict parallel safe as $$
declare
  p text[] := regexp_match(given, '^([0-9]{4})-([0-9][0-9])-([0-9][0-9])(?:T([0-9][0-9]):([0-9][0-9])(?::([0-9][0-9])(?:[.,]([0-9]+))?)?(?:Z|([+-])([0-9][0-9])(?::?([0-9][0-9]))?)?)?$');
  y int;
  m int;
  d int;
  days int;
  away int := 0;
begin
  if p is null then
    return null;
  end if;
  y := p[1];
  m := p[2];
  d := p[3];
  days := case
    when m = 2 then case when y % 4 = 0 and (y % 100 <> 0 or y % 400 = 0) then 29 else 28 end
    when m in (4, 6, 9, 11) then 30
    else 31
  end;
  if y < 1 or m not between 1 and 12 or d not between 1 and days then
    return null;
  end if;
  if coalesce(p[4]::int, 0) > 23 or coalesce(p[5]::int, 0) > 59 or coalesce(p[6]::int, 0) > 60
    or coalesce(p[9]::int, 0) > 23 or coalesce(p[10]::int, 0) > 59 then
    return null;
  end if;
  if p[8] is not null then
    away := (case p[8] when '-' then -1 else 1 end) * (p[9]::int * 60 + coalesce(p[10]::int, 0));
  end if;
  return (make_date(y, m, d) - date '1970-01-01')::double precision * 86400000
    + coalesce(p[4]::int, 0) * 3600000
    + (coalesce(p[5]::int, 0) - away) * 60000
    + case when p[6] = '60' then 59999 else coalesce(p[6]::int, 0) * 1000 + coalesce(rpad(left(p[7], 3), 3, '0')::int, 0) end;
end
$$;

-- What is there already. The lane's own consumers write from now on.
insert into event_rollup (scope_id, event, slot, app_id, count, valued, value_sum)
select scope_id, event, date_bin('15 minutes', ts, 'epoch'), coalesce(app_id, ''), count(*), count(value),
  case when bool_or(abs(value) > 1e290) then null else coalesce(sum(value) filter (where abs(value) <= 1e290), 0) end
from event
group by 1, 2, 3, 4;

insert into event_name (scope_id, event, first_seen, last_seen)
select scope_id, event, first_seen, last_seen
from (
  select scope_id, event, min(received_at) as first_seen, max(received_at) as last_seen,
    row_number() over (partition by scope_id order by min(pos)) as n
  from event
  group by scope_id, event
) named
where n <= 2001;

insert into event_property (scope_id, event, property, types, last_seen)
select scope_id, event, property, types, last_seen
from (
  select e.scope_id, e.event, p.key as property, max(e.received_at) as last_seen,
    bit_or(case jsonb_typeof(p.value) when 'string' then 1 when 'number' then 2 when 'boolean' then 4 when 'null' then 8
      when 'array' then 16 else 32 end)::smallint as types,
    row_number() over (partition by e.scope_id, e.event order by min(e.pos), p.key) as n
  from event e
  join event_name using (scope_id, event)
  cross join lateral jsonb_each(e.props) p
  where length(p.key) <= 200
    and p.key not in ('$set', '$set_once', '$unset', '$increment', '$anon_distinct_id')
  group by e.scope_id, e.event, p.key
) known
where n <= 501;
