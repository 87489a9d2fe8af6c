-- Spends that came with a purchase.

alter table operation
  add column purchase_key text;                -- what the spend was to be paid with; part of its fingerprint
