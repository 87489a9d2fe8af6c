-- Merges taken back, deletions, and the work that they and merges leave behind.

alter table merge_journal
  add column split_pos bigint,
  add column split_at timestamptz;
create index merge_journal_source on merge_journal (source_customer_id) where source_customer_id is not null;
-- Who is mentioned where, for deletions. Neither begins with the scope: look-ups by customer must not choose them.
create index merge_journal_source_name on merge_journal (source_distinct_id);
create index merge_journal_target_name on merge_journal (target_distinct_id);

-- What happened to records as such, in the order of the lane. Holds no distinct id once it is settled.
create table customer_change (
  scope_id int not null,
  pos bigint not null,
  kind text not null check (kind in ('merge', 'split', 'delete')),
  customer_id uuid not null,
  source_customer_id uuid,                     -- of a merge: what went in; of a split: what came out
  merge_id bigint,
  at timestamptz not null default clock_timestamp(),
  settled_at timestamptz,                      -- when its events were re-pointed, or everything was erased
  work jsonb,                                  -- of a split or deletion, until it is settled
  primary key (scope_id, pos)
);
create index customer_change_unsettled on customer_change (scope_id, pos) where settled_at is null;

insert into customer_change (scope_id, pos, kind, customer_id, source_customer_id, merge_id, at, settled_at)
select scope_id, pos, 'merge', customer_id, source_customer_id, id, created_at,
  case when source_customer_id is null or moved ->> 'how' = 'attach_target' then created_at end
from merge_journal
where status = 'merged'
on conflict do nothing;

-- Commands by whom they name, for deletions.
create index command_customer on command ((body ->> 'customer_id')) where body ? 'customer_id';
create index command_distinct_id on command ((body ->> 'distinct_id')) where body ? 'distinct_id';
create index command_source on command ((body ->> 'source_distinct_id')) where body ? 'source_distinct_id';

alter table account
  add column split_from bigint;                -- the account that held its grants until a merge was taken back
