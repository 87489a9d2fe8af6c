-- Until when an attachment is paid for: beyond it, in grace, an entity is given no further period.
alter table entity_terms add column paid_until_ms bigint; -- null: as long as it has effect
