-- Which changes of Experiences an endpoint hears of, beside the webhooks of journeys.
alter table webhook_endpoint add column events text[] not null default '{}';

-- What endpoints are still to be told, at least once, after the transaction that changed it.
create table announcement (
  scope_id int not null,
  id bigint generated always as identity,
  endpoint_id text not null,
  key uuid not null,                           -- of all tries
  body text not null,
  attempts smallint not null default 0,
  due_at_ms bigint not null,                   -- while it is being sent: when somebody else tries
  primary key (scope_id, id)
);
create index announcement_due on announcement (due_at_ms);
