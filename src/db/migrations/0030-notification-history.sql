-- How far Apple's history of notifications was read, for each credential and environment of the App Store. By the clock of the project.
create table appstore_history (
  scope_id int not null,
  app_id text not null,
  store_environment text not null check (store_environment in ('production', 'sandbox')),
  read_until_ms bigint not null,
  span jsonb,                                  -- that is being read, and where its next page begins; null: none
  due_at_ms bigint not null,
  primary key (scope_id, app_id, store_environment)
);
create index appstore_history_due on appstore_history (due_at_ms);

-- The dead are few, and listed; those that were done are many.
create index store_inbox_dead on store_inbox (scope_id, id) where status = 'dead';
create index store_outbox_dead on store_outbox (scope_id, id) where status = 'dead';

-- What was processed is known by its id: what it said is kept no longer.
update store_inbox set payload = payload - 'sealed' where status in ('done', 'ignored') and payload ? 'sealed';
