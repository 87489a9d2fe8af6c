-- People: what the sign-in library keeps (credential, session, verification), invitations, attempts, mail to be sent.

update users set email = lower(email) where email <> lower(email);
alter table users
  add column image text,
  add column updated_at timestamptz not null default now();

-- How a user signs in. `provider_id` is 'credential' for a password: scrypt, "<salt hex>:<key hex>".
create table user_credential (
  id text primary key,
  user_id text not null references users (id),
  provider_id text not null,
  account_id text not null,
  password text,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  unique (user_id, provider_id)
);
insert into user_credential (id, user_id, provider_id, account_id, password)
  select 'cred_' || substr(id, 5), id, 'credential', id, password_hash from users where password_hash is not null;
alter table users drop column password_hash;

create table user_session (
  id text primary key,
  user_id text not null references users (id),
  token text not null unique,                  -- base64url of the SHA-256 of the bearer token
  expires_at timestamptz not null,
  ip_address text,
  user_agent text,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now()
);
create index user_session_user on user_session (user_id);
create index user_session_expiry on user_session (expires_at);

-- Tokens of password resets: base64url of their SHA-256.
create table user_verification (
  id text primary key,
  identifier text not null,
  value text not null,
  expires_at timestamptz not null,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now()
);
create index user_verification_identifier on user_verification (identifier);
create index user_verification_expiry on user_verification (expires_at);

create index member_user on member (user_id);
create index secret_key_workspace on secret_key (workspace_id, created_at);

create table invitation (
  id text primary key,
  workspace_id text not null references workspace (id),
  email text not null,                         -- lower case
  role text not null check (role in ('owner', 'admin', 'member')),
  invited_by text not null references users (id),
  created_at timestamptz not null default now(),
  expires_at timestamptz not null,
  accepted_at timestamptz,
  revoked_at timestamptz
);
create index invitation_workspace on invitation (workspace_id, created_at);
-- One open invitation for each address: a newer one replaces it.
create unique index invitation_open on invitation (workspace_id, email) where accepted_at is null and revoked_at is null;

-- How often a thing was tried by an address or for an e-mail; counted over all processes.
create table attempt (
  subject bytea primary key,                   -- SHA-256 of what is counted and for whom
  count int not null,
  resets_at timestamptz not null
);
create index attempt_age on attempt (resets_at);

-- Mail to be sent. A row is gone once the mail server took the mail; until then it is tried again.
create table outgoing_mail (
  id bigint generated always as identity primary key,
  sealed text not null,                        -- {to, subject, text} as JSON, sealed under the master key: it holds tokens
  tries int not null default 0,
  next_try_at timestamptz not null default now(),
  created_at timestamptz not null default now()
);
create index outgoing_mail_due on outgoing_mail (next_try_at);
