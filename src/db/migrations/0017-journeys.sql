-- Journeys: runs of published Experiences by customers, what they wait for, and what was decided. Instants are Unix milliseconds.

create table journey (
  scope_id int not null,
  id uuid not null,                            -- version 7, made by a device or here
  customer_id uuid not null,
  app_id text not null,
  experience_id int not null,
  version_number int not null,                 -- with the build the pin: it changes by an explicit move only
  build_id text not null,
  origin text not null check (origin in ('device', 'api', 'event', 'segment', 'server_event')),
  occurrence text not null,
  status text not null check (status in ('armed', 'on_device', 'waiting', 'ended')),
  end_reason text,                             -- set exactly when it has ended
  end_detail text,                             -- such as the reason of an exit, or what failed
  rev int not null,                            -- counts committed transitions: the optimistic lock
  generation int not null,                     -- of the newest leg offered; 0 is the one a device began with
  section_key text,                            -- of the leg offered or running
  step_id text,                                -- the server step it waits in
  trust text not null check (trust in ('device', 'server')),
  held boolean not null,
  context text not null,                       -- {event, responses}
  conversion text not null,                    -- {startedAt, revision, basis?, conversion?}
  pending text not null,                       -- what it waits for and its timers
  started_at_ms bigint not null,
  expires_at_ms bigint not null,
  ended_at_ms bigint,
  watched_until_ms bigint,                     -- of an ended one: how long its goal can still be met
  primary key (scope_id, id),
  check ((status = 'ended') = (ended_at_ms is not null) and (status = 'ended') = (end_reason is not null))
) with (fillfactor = 70);
-- No predicate over the status: a change between open states stays within its page.
create index journey_open on journey (scope_id, customer_id) where ended_at_ms is null;
create index journey_customer on journey (scope_id, customer_id, id);
create index journey_experience on journey (scope_id, experience_id, id);

create table journey_transition (
  scope_id int not null,
  journey_id uuid not null,
  rev int not null,                            -- 1..n without gaps
  at_ms bigint not null,
  input text not null,
  facts text,                                  -- what the decision looked at beside the input; null: nothing
  from_state text not null,
  to_state text not null,
  effects text not null,
  primary key (scope_id, journey_id, rev)
);

-- One offer of one leg, and what came back.
create table journey_leg (
  scope_id int not null,
  journey_id uuid not null,
  generation int not null,
  section_key text not null,
  leg_id text not null,
  version_number int not null,
  status text not null check (status in ('armed', 'on_device', 'completed', 'expired', 'lost', 'withdrawn')),
  armed_at_ms bigint,                          -- null: a device began with it
  started_at_ms bigint,                        -- as reported
  started_event uuid,
  completed_at_ms bigint,
  completed_event uuid,
  outcome text,
  outputs text,                                -- as accepted
  dispositions text not null default '[]',     -- what became of its reports
  primary key (scope_id, journey_id, generation)
);

create table journey_timer (
  scope_id int not null,
  journey_id uuid not null,
  kind text not null check (kind in ('step', 'arm', 'run', 'life')),
  rev int not null,                            -- of the transition that set it
  due_at_ms bigint not null,
  look_at_ms bigint not null,                  -- when it is looked at next: not before it is due
  after_lane boolean not null,                 -- an event received in time comes first
  parked boolean not null,
  attempts smallint not null default 0,
  primary key (scope_id, journey_id, kind)
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000,
  autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_scale_factor = 0.05);
create index journey_timer_look on journey_timer (look_at_ms) where not parked;

-- Events that waiting journeys would go on with.
create table journey_subscription (
  scope_id int not null,
  customer_id uuid not null,
  event_name text not null,
  journey_id uuid not null,
  primary key (scope_id, customer_id, event_name, journey_id)
);
create index journey_subscription_journey on journey_subscription (scope_id, journey_id);

-- What made a journey, or would have: a key names one journey for ever.
create table journey_occurrence (
  scope_id int not null,
  app_id text not null,
  experience_id int not null,
  customer_id uuid not null,
  key text not null,
  status text not null check (status in ('started', 'ineligible')),
  reason text,
  journey_id uuid,
  context_sha256 bytea,
  at_ms bigint not null,
  primary key (scope_id, app_id, experience_id, customer_id, key),
  check ((status = 'started') = (journey_id is not null))
);

-- What the frequency of an Experience counts. Locked by every enrolment, before journeys.
create table experience_enrolment (
  scope_id int not null,
  experience_id int not null,
  customer_id uuid not null,
  count int not null default 0,
  last_enrolled_at_ms bigint,
  times bigint[] not null default '{}',        -- the newest of the counted
  primary key (scope_id, experience_id, customer_id)
) with (fillfactor = 80);

-- What the lane hands to journeys, consumed for each customer in this order.
create table journey_inbox (
  scope_id int not null,
  customer_id uuid not null,
  pos bigint not null,
  n int not null,
  kind text not null,
  received_at_ms bigint not null,
  body text not null,
  attempts smallint not null default 0,
  due_at_ms bigint not null default 0,         -- after a failure: not before
  primary key (scope_id, customer_id, pos, n)
);
create index journey_inbox_order on journey_inbox (scope_id, pos, n);

-- What leaves over the network, at least once, after the transition that decided it.
create table journey_outbox (
  scope_id int not null,
  journey_id uuid not null,
  rev int not null,
  index smallint not null,
  endpoint_id text not null,
  body text not null,
  timeout_ms int not null,
  attempts_max smallint not null,
  attempts smallint not null default 0,
  due_at_ms bigint not null,                   -- while it is being sent: when somebody else tries
  failures smallint not null default 0,        -- of writing down its result
  primary key (scope_id, journey_id, rev, index)
);
create index journey_outbox_due on journey_outbox (due_at_ms);

-- Rows that could not be applied however often they were tried.
create table journey_quarantine (
  scope_id int not null,
  id bigint generated always as identity,
  source text not null check (source in ('timer', 'inbox', 'outbox')),
  customer_id uuid,
  journey_id uuid,
  body text not null,                          -- the row as it stood
  error text not null,
  at_ms bigint not null,
  primary key (scope_id, id)
);
create index journey_quarantine_journey on journey_quarantine (scope_id, journey_id);

-- How many inputs changed nothing, and why.
create table journey_disposition (
  scope_id int not null,
  day date not null,
  disposition text not null,
  count bigint not null,
  primary key (scope_id, day, disposition)
) with (fillfactor = 50);

-- Where webhooks of journeys go.
create table webhook_endpoint (
  scope_id int not null,
  id int generated always as identity primary key,
  public_id text not null unique,
  name text not null,
  url text not null,
  sealed_secret text not null,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  deleted_at timestamptz
);
create index webhook_endpoint_newest on webhook_endpoint (scope_id, id) where deleted_at is null;

-- The plan of the build that a journey is pinned to.
create index publication_build on publication (scope_id, app_id, build_id);
