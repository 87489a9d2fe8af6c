-- Customers with an input that failed wait for it: they are few, however long the inbox is.
create index journey_inbox_waiting on journey_inbox (scope_id, due_at_ms) include (customer_id) where due_at_ms > 0;
