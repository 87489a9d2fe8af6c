-- How far the account tokens of ids that were there before their app could sell have been written down.
create table account_token_backfill (
  scope_id int not null,
  app_id text not null,
  basis text not null,                         -- SHA-256 of all that the rules make tokens of, beside the id: another one begins anew
  after_distinct_id text not null,
  passes_left int not null,
  due_at_ms bigint,                            -- null: done
  primary key (scope_id, app_id)
);

-- Which certificate vouches for what is believed of a transaction of the App Store: to be looked through when it is revoked.
alter table store_transaction add column signer text; -- hex SHA-256
create index store_transaction_signer on store_transaction (signer) where signer is not null;
