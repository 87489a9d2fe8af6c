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
     on conflict (fingerprint) do nothing`,
    [fingerprint, issuerFingerprint, certificate, now],
  )
}
