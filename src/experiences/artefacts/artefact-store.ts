import type { Sql, Tx } from '../../db/pool.ts'
import { must } from '../../kernel/assert.ts'
import { brokenUploadMs } from '../../kernel/limits.ts'

/** An uploaded file of a project. */
export interface StoredArtefact {
  sha256: string
  contentType: string
  sizeBytes: number
  createdAt: Date
}

/** Room for a file that nobody sees yet. */
export async function insertBlob(sql: Sql): Promise<bigint> {
  const [row] = await sql.query<{ id: bigint }>('insert into artefact_blob default values returning id')
  return must(row, 'the row was inserted').id
}

export async function insertPiece(sql: Sql, blobId: bigint, n: number, bytes: Buffer): Promise<void> {
  await sql.query('insert into artefact_piece (blob_id, n, bytes) values ($1, $2, $3)', [blobId, n, bytes])
}

export async function deleteBlob(sql: Sql, blobId: bigint): Promise<void> {
  await sql.query('delete from artefact_blob where id = $1', [blobId])
}

/** False when the project has it already. */
export async function insertArtefact(
  tx: Tx,
  projectId: string,
  { sha256, contentType, sizeBytes, blobId }: Omit<StoredArtefact, 'createdAt'> & { blobId: bigint },
): Promise<boolean> {
  const rows = await tx.query(
    `insert into artefact (project_id, sha256, content_type, size_bytes, blob_id)
     values ($1, $2, $3, $4, $5)
     on conflict (project_id, sha256, content_type) do nothing
     returning 1`,
    [projectId, sha256, contentType, sizeBytes, blobId],
  )
  return rows.length === 1
}

export async function selectArtefacts(sql: Sql, projectId: string, digests: string[]): Promise<StoredArtefact[]> {
  const rows = await sql.query<Omit<StoredArtefact, 'sizeBytes'> & { sizeBytes: bigint }>(
    `select sha256, content_type as "contentType", size_bytes as "sizeBytes", created_at as "createdAt"
     from artefact
     where project_id = $1
       and sha256 = any($2::text[])`,
    [projectId, digests],
  )
  return rows.map((row) => ({ ...row, sizeBytes: Number(row.sizeBytes) }))
}

/** Digests of those whose pieces are not all there, or not all of their bytes. */
export async function selectUnreadable(sql: Sql, projectId: string, digests: string[]): Promise<string[]> {
  const rows = await sql.query<{ sha256: string }>(
    `select distinct a.sha256
     from artefact a
     where a.project_id = $1
       and a.sha256 = any($2::text[])
       and a.size_bytes <> (
         select coalesce(sum(octet_length(p.bytes)), 0)
         from artefact_piece p
         where p.blob_id = a.blob_id)`,
    [projectId, digests],
  )
  return rows.map(({ sha256 }) => sha256)
}

/** By hash, in whichever project that is not deleted: equal hashes are equal bytes. By `artefact_address`. */
export async function findBlob(
  sql: Sql,
  { sha256, contentType, projectId }: { sha256: string; contentType: string; projectId?: string },
): Promise<{ blobId: bigint; sizeBytes: number } | undefined> {
  const rows = await sql.query<{ blobId: bigint; sizeBytes: bigint }>(
    `select a.blob_id as "blobId", a.size_bytes as "sizeBytes"
     from artefact a
     join project p on p.id = a.project_id
     where a.sha256 = $1
       and a.content_type = $2
       and p.deleted_at is null
       and ($3::text is null or p.id = $3)
     limit 1`,
    [sha256, contentType, projectId ?? null],
  )
  return rows.map(({ blobId, sizeBytes }) => ({ blobId, sizeBytes: Number(sizeBytes) }))[0]
}

export async function selectPiece(sql: Sql, blobId: bigint, n: number): Promise<Buffer | undefined> {
  const rows = await sql.query<{ bytes: Buffer }>('select bytes from artefact_piece where blob_id = $1 and n = $2', [
    blobId,
    n,
  ])
  return rows[0]?.bytes
}

/** What uploads that broke off have left, and those of files that were known. */
export async function forgetBrokenUploads(sql: Sql): Promise<void> {
  await sql.query(
    `delete from artefact_blob b
     where b.created_at < now() - make_interval(secs => $1)
       and not exists (select from artefact a where a.blob_id = b.id)`,
    [brokenUploadMs / 1000],
  )
}
