import type { Sql } from '../../db/pool.ts'

export interface Leaf {
  fingerprint: string
  status: 'unknown' | 'good' | 'revoked'
  nextUpdate: number | null
}

export async function selectLeaves(sql: Sql): Promise<Leaf[]> {
  const rows = await sql.query<{ fingerprint: string; status: Leaf['status']; next_update_ms: bigint | null }>(
    `select fingerprint, status, next_update_ms
     from apple_leaf`,
  )
  return rows.map(({ fingerprint, status, next_update_ms: next }) => ({
    ...{ fingerprint, status },
    nextUpdate: next === null ? null : Number(next),
  }))
}

/** A certificate to ask about, with that of whoever made it. */
export interface AskedLeaf {
  fingerprint: string
  certificate: Buffer
  issuer: Buffer
  /** Of the root that both hang under. */
  rootFingerprint: string
  /** When it was last told of, or first seen. */
  knownAt: number
}

/** Those whose last answer has had its time, or is a day old. Roots are asked about by nobody. */
export async function selectDueLeaves(sql: Sql, { now, dayMs }: { now: number; dayMs: number }): Promise<AskedLeaf[]> {
  const rows = await sql.query<{
    fingerprint: string
    certificate: Buffer
    issuer: Buffer
    root_fingerprint: string
    known_at: bigint
  }>(
    `select l.fingerprint, l.certificate, i.certificate as issuer,
       coalesce(i.issuer_fingerprint, i.fingerprint) as root_fingerprint,
       coalesce(l.checked_at_ms, l.first_seen_ms) as known_at
     from apple_leaf l
     join apple_leaf i on i.fingerprint = l.issuer_fingerprint
     where l.status <> 'revoked'
       and (l.checked_at_ms is null or least(l.next_update_ms, l.checked_at_ms + $2) <= $1)`,
    [now, dayMs],
  )
  return rows.map((row) => ({
    ...{ fingerprint: row.fingerprint, certificate: row.certificate, issuer: row.issuer },
    ...{ rootFingerprint: row.root_fingerprint, knownAt: Number(row.known_at) },
  }))
}

/** What was revoked stays so. */
export async function updateLeaf(
  sql: Sql,
  {
    fingerprint,
    status,
    nextUpdate,
    now,
  }: { fingerprint: string; status: 'good' | 'revoked'; nextUpdate: number; now: number },
): Promise<void> {
  await sql.query(
    `update apple_leaf
     set status = $2,
       next_update_ms = $3,
       checked_at_ms = $4
     where fingerprint = $1
       and status <> 'revoked'`,
    [fingerprint, status, nextUpdate, now],
  )
}

export interface NewLeaf {
  fingerprint: string
  issuerFingerprint: string | null
  certificate: Buffer
  now: number
}

export async function insertLeaf(
  sql: Sql,
  { fingerprint, issuerFingerprint, certificate, now }: NewLeaf,
): Promise<void> {
  await sql.query(
    `insert into apple_leaf (fingerprint, issuer_fingerprint, certificate, status, first_seen_ms)
     values ($1, $2, $3, 'unknown', $4)
     on conflict (fingerprint) do update
     set issuer_fingerprint = coalesce(apple_leaf.issuer_fingerprint, excluded.issuer_fingerprint)`,
    [fingerprint, issuerFingerprint, certificate, now],
  )
}

/** Purchases whose newest state rests on the certificate, or on one that it signed: how many, and the first of them. */
export async function selectSignedBy(
  sql: Sql,
  fingerprint: string,
  { max }: { max: number },
): Promise<{ count: number; purchases: string[] }> {
  const rows = await sql.query<{ public_id: string; count: number }>(
    `select l.public_id, count(*) over ()::int as count
     from store_lineage l
     where l.id in (
       select t.lineage_id
       from store_transaction t
       join apple_leaf leaf on leaf.fingerprint = t.signer
       where leaf.fingerprint = $1
         or leaf.issuer_fingerprint = $1)
     order by l.id
     limit $2`,
    [fingerprint, max],
  )
  return { count: rows[0]?.count ?? 0, purchases: rows.map((row) => row.public_id) }
}
