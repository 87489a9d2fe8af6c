-- Customers that segments cannot look at: they are tried again later, and stop nobody else.

create table segment_aside (
  scope_id int not null,
  customer_id uuid not null,
  error text not null,
  tries int not null,
  since timestamptz not null,
  retry_at timestamptz not null,
  primary key (scope_id, customer_id)
);
