-- What moves whenever a customer's properties, identity, memberships, assignments or journeys move; a customer without a row
-- is at 0. Balances move by account.version. Rows are never deleted, so that no number comes back.

create table customer_rev (
  scope_id int not null,
  customer_id uuid not null,
  rev bigint not null,
  primary key (scope_id, customer_id)
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02);

-- The last change of a customer in a segment, beside all of a customer's.
create index membership_change_last on membership_change (scope_id, customer_id, segment_id, pos, n);
drop index membership_change_customer;
