-- Figures of use, and reading the audit log by object.

-- Increments that every process adds every few seconds; figures, not accounts.
create table usage_stat (
  scope_id int not null,
  day date not null,                           -- UTC
  requests bigint not null default 0,
  events bigint not null default 0,
  decisions bigint not null default 0,
  primary key (scope_id, day)
) with (fillfactor = 50);

create index audit_log_object on audit_log (workspace_id, object_id, id);
