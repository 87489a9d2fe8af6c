-- What began journeys, or did not, is listed newest first, and forgotten when its key may be used again.
alter table journey_occurrence add column id bigint generated always as identity;
create index journey_occurrence_experience on journey_occurrence (scope_id, experience_id, id);
create index journey_occurrence_at on journey_occurrence (at_ms);

-- Customers whose journeys rest: nothing begins for them, and what is open is on hold.
create table journey_pause (
  scope_id int not null,
  customer_id uuid not null,
  at_ms bigint not null,
  primary key (scope_id, customer_id)
);

-- What became of the journeys that were open when a publication took over, was paused or was taken back.
alter table publication add column in_flight text not null default 'finish' check (in_flight in ('finish', 'stop', 'move_armed'));
alter table publication_pointer add column holds boolean not null default false;

-- What is to be told to all open journeys of an Experience in an app, some at a time, in the order of the commands.
create table journey_sweep (
  id bigint generated always as identity primary key,
  scope_id int not null,
  experience_id int not null,
  app_id text not null,
  kind text not null check (kind in ('stop', 'hold', 'resume', 'move')),
  build_id text,                               -- to move to
  reason text not null,
  after_id uuid,                               -- those up to here were told
  at_ms bigint not null,                       -- what began later is not told
  check ((kind = 'move') = (build_id is not null))
);
create index journey_sweep_order on journey_sweep (scope_id, experience_id, app_id, id);
