-- Looking operations up by customer, reversing them, and entities that a workspace has registered.

-- Newest first for one customer. Insert only, like the table; the operations of one customer lie together. It must not begin
-- with the scope: on a table without statistics the planner took such an index for the look-up by operation id, and kept it
-- (1,200 instead of 15,000 consumes/s).
create index operation_customer on operation (customer_id, occurred_at_ms);

alter table operation
  add column result jsonb;                     -- of a reversal: the saved answer

create sequence entity_registration;

alter table account_entity
  add column registration bigint,              -- a number of its own while registered; newer is larger
  add column registered_at_ms bigint;

-- What an attached Product gives each registered entity, those included that are registered later. The grants made of a
-- row have its source_ref, so that each entity gets its grant once.
create table entity_terms (
  id bigint generated always as identity primary key,
  scope_id int not null,
  account_id bigint not null,
  feature_id int not null,
  source_ref text not null,
  origin text not null check (origin in ('product', 'purchase', 'manual', 'journey')),
  rank smallint not null,
  product_id text,
  template jsonb not null,                     -- as the Product had it
  effective_at_ms bigint not null,
  expires_at_ms bigint,
  created_at_ms bigint not null,
  unique (scope_id, source_ref, feature_id)
);
create index entity_terms_account on entity_terms (account_id);
