-- What keeps purchases true after they were attached.

-- Calls left of what a store allows a credential each minute, for all processes together.
create table store_quota (
  key text primary key,                        -- SHA-256 of the credential's name
  level double precision not null,
  filled_at timestamptz not null
);

-- Orders that Google Play refunded, revoked or charged back, kept because they may be told before what they are about.
create table play_voided_order (
  scope_id int not null,
  app_id text not null,
  order_id text not null,
  voided_at_ms bigint not null,
  primary key (scope_id, app_id, order_id)
);

-- Refunds of a part of what was bought.
alter table store_period
  add column granted_quantity int,             -- of the first grant; null: none yet
  add column refund_taken int not null default 0; -- parts of it taken back: hundred-thousandths, or whole ones

-- How far the list of voided purchases was read.
create table play_voided_cursor (
  scope_id int not null,
  app_id text not null,
  read_until_ms bigint not null,
  due_at_ms bigint not null,                   -- by the clock of the project, as what was read
  primary key (scope_id, app_id)
);
create index play_voided_cursor_due on play_voided_cursor (due_at_ms);
