-- Spends that came with a purchase.

alter table operation
  add column purchase_key text;                -- what the spend was to be paid with; part of its fingerprint

-- When what holds in an app was last made to hold: devices keep what they were delivered for a while.
alter table publication_pointer add column changed_at timestamptz not null default now();

-- Which introductory offers were allowed or denied, and by which journey.
create table intro_token (
  scope_id int not null,
  nonce uuid not null,                         -- of the token
  app_id text not null,
  customer_id uuid not null,
  journey_id uuid not null,
  leg_id text not null,
  placement_id text not null,
  store_product_id text not null,
  allowed boolean not null,
  transaction_id text not null,
  issued_at timestamptz not null default now(),
  primary key (scope_id, nonce)
);
create index intro_token_customer on intro_token (customer_id, issued_at);

-- Clients name the app transaction of a device, which only signed claims connect with somebody.
create index store_transaction_app_transaction on store_transaction ((claims ->> 'appTransactionId'), scope_id)
  where claims ? 'appTransactionId';
