-- Purchases by card, paid on pages that Stripe hosts.

alter table store_link drop constraint store_link_store_check;
alter table store_link add constraint store_link_store_check check (store in ('appstore', 'playstore', 'stripe'));
alter table store_lineage drop constraint store_lineage_store_check;
alter table store_lineage add constraint store_lineage_store_check check (store in ('appstore', 'playstore', 'stripe'));
-- Of Stripe the value is the id of the checkout.
alter table account_binding drop constraint account_binding_store_check;
alter table account_binding add constraint account_binding_store_check check (store in ('appstore', 'playstore', 'stripe'));
alter table account_binding drop constraint account_binding_source_check;
alter table account_binding add constraint account_binding_source_check
  check (source in ('rule', 'registered', 'first_claim', 'checkout'));

-- The last payment page that a command opened. Whose it is stands in account_binding, under public_id.
create table checkout_session (
  scope_id int not null,
  id bigint generated always as identity primary key,
  public_id text not null unique,              -- what the page and all that is paid on it carries
  app_id text not null,
  command_hash text not null,
  session_id text,                             -- of Stripe; null: it was not heard to have opened one
  url text,
  expires_at_ms bigint,
  completed_at_ms bigint,
  created_at_ms bigint not null,
  unique (scope_id, app_id, command_hash)
);
