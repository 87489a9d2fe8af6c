-- Places in an attached Product for entities that nobody registered, and grants that a sweeper may hide.

alter table entity_terms
  add column max_entities int not null default 0,  -- the first so many entities get a grant by using the Feature
  add column granted int not null default 0;       -- entities that have one, ever

update entity_terms t
set granted = (
  select count(*)
  from ledger_grant g
  where g.scope_id = t.scope_id
    and g.source_ref = t.source_ref
    and g.feature_id = t.feature_id
    and g.entity_id is not null
);
