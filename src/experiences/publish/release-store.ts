import type { Sql, Tx } from '../../db/pool.ts'
import { releaseInsertBytesMax } from '../../kernel/limits.ts'
import type { Scope } from '../../tenancy/index.ts'
import type { Pin } from '../deliver/delivery.ts'

interface SignedRelease {
  sha256: string
  bytes: Buffer
  signingKeyId: number
  signature: Buffer
}

/** A few megabytes at a time: an array is sent as text. */
export async function insertReleases(tx: Tx, scope: Scope, releases: SignedRelease[]): Promise<void> {
  let waiting: SignedRelease[] = []
  let size = 0
  for (const release of releases) {
    if (waiting.length > 0 && size + release.bytes.length > releaseInsertBytesMax) {
      await insertSome(tx, scope, waiting)
      waiting = []
      size = 0
    }
    waiting.push(release)
    size += release.bytes.length
  }
  await insertSome(tx, scope, waiting)
}

async function insertSome(tx: Tx, scope: Scope, releases: SignedRelease[]): Promise<void> {
  const digests = releases.map(({ sha256 }) => sha256)
  await tx.query(
    `insert into release (scope_id, descriptor_sha256, descriptor)
     select $1, unnest($2::text[]), unnest($3::bytea[])
     on conflict do nothing`,
    [scope.scopeId, digests, releases.map(({ bytes }) => bytes)],
  )
  await tx.query(
    `insert into release_signature (scope_id, descriptor_sha256, signing_key_id, signature)
     select $1, unnest($2::text[]), unnest($3::int[]), unnest($4::bytea[])
     on conflict do nothing`,
    [
      ...[scope.scopeId, digests, releases.map(({ signingKeyId }) => signingKeyId)],
      releases.map(({ signature }) => signature),
    ],
  )
}

export async function insertSignature(
  tx: Tx,
  scope: Scope,
  { sha256, signingKeyId, signature }: { sha256: string; signingKeyId: number; signature: Buffer },
): Promise<void> {
  await tx.query(
    `insert into release_signature (scope_id, descriptor_sha256, signing_key_id, signature)
     values ($1, $2, $3, $4)
     on conflict do nothing`,
    [scope.scopeId, sha256, signingKeyId, signature],
  )
}

/** Releases that a key should verify too: those of what holds now in these apps. */
export async function selectCurrentReleases(
  tx: Tx,
  scope: Scope,
  appIds: string[] | '*',
): Promise<{ sha256: string; bytes: Buffer }[]> {
  return tx.query<{ sha256: string; bytes: Buffer }>(
    `select r.descriptor_sha256 as sha256, r.descriptor as bytes
     from release r
     where r.scope_id = $1
       and r.descriptor_sha256 in (
         select l.descriptor_sha256
         from publication_pointer pp
         join publication_leg l on l.scope_id = pp.scope_id and l.app_id = pp.app_id and l.seq = pp.seq
         where pp.scope_id = $1
           and ($2::text[] is null or pp.app_id = any($2)))`,
    [scope.scopeId, appIds === '*' ? null : appIds],
  )
}

/** Those of the newest stamps of versions that something still runs. */
export async function selectPinnedReleases(
  tx: Tx,
  { scopeId }: Scope,
  pins: Pin[],
): Promise<{ sha256: string; bytes: Buffer }[]> {
  return tx.query<{ sha256: string; bytes: Buffer }>(
    `select r.descriptor_sha256 as sha256, r.descriptor as bytes
     from release r
     where r.scope_id = $1
       and r.descriptor_sha256 in (
         select l.descriptor_sha256
         from unnest($2::text[], $3::int[], $4::int[]) as pin(app_id, experience_id, version_number)
         cross join lateral (
           select max(seq) as seq
           from publication p
           where p.scope_id = $1
             and p.app_id = pin.app_id
             and p.experience_id = pin.experience_id
             and p.version_number = pin.version_number
         ) newest
         join publication_leg l on l.scope_id = $1 and l.app_id = pin.app_id and l.seq = newest.seq)`,
    [
      scopeId,
      pins.map(({ appId }) => appId),
      pins.map(({ experienceRowId }) => experienceRowId),
      pins.map(({ versionNumber }) => versionNumber),
    ],
  )
}

/** A release and its signatures, the newest key's first. */
export async function selectRelease(
  sql: Sql,
  scopes: Scope[],
  sha256: string,
): Promise<{ legId: string; bytes: Buffer; keyId: string; signature: Buffer } | undefined> {
  const rows = await sql.query<{ legId: string; bytes: Buffer; keyId: string; signature: Buffer }>(
    `select l.leg_id as "legId", r.descriptor as bytes, k.key_id as "keyId", s.signature
     from release r
     join publication_leg l on l.scope_id = r.scope_id and l.descriptor_sha256 = r.descriptor_sha256
     join release_signature s on s.scope_id = r.scope_id and s.descriptor_sha256 = r.descriptor_sha256
     join signing_key k on k.id = s.signing_key_id
     left join signing_key_use own on own.scope_id = r.scope_id and own.app_id = l.app_id
     left join signing_key_use every on every.scope_id = r.scope_id and every.app_id = '*'
     where r.scope_id = any($1)
       and r.descriptor_sha256 = $2
     order by k.id = coalesce(own.signing_key_id, every.signing_key_id) desc, k.id desc
     limit 1`,
    [scopes.map(({ scopeId }) => scopeId), sha256],
  )
  return rows[0]
}
