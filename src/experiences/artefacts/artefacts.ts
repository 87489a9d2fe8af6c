import { createHash } from 'node:crypto'
import type { Pool, Sql, Tx } from '../../db/pool.ts'
import { must } from '../../kernel/assert.ts'
import { refuse } from '../../kernel/errors.ts'
import { artefactPieceBytes } from '../../kernel/limits.ts'
import {
  deleteBlob,
  findBlob,
  insertArtefact,
  insertBlob,
  insertPiece,
  type StoredArtefact,
  selectArtefacts,
  selectPiece,
} from './artefact-store.ts'

/** A file that has arrived whole and that nobody sees yet. */
export interface Upload {
  blobId: bigint
  sha256: string
  sizeBytes: number
  contentType: string
}

/**
 * Writes a file as it arrives, one piece at a time, and hashes it on the way. 413 beyond `bytesMax`, 400 for none. What breaks
 * off leaves pieces that no artefact names; they are swept.
 */
export async function receive(
  pool: Pool,
  source: AsyncIterable<Buffer>,
  { contentType, bytesMax }: { contentType: string; bytesMax: number },
): Promise<Upload> {
  const blobId = await insertBlob(pool)
  const digest = createHash('sha256')
  let [sizeBytes, n] = [0, 0]
  try {
    for await (const piece of piecesOf(source)) {
      sizeBytes += piece.length
      if (sizeBytes > bytesMax) {
        throw refuse('payload_too_large', { message: `A file of type ${contentType} has at most ${bytesMax} bytes.` })
      }
      digest.update(piece)
      await insertPiece(pool, blobId, n++, piece)
    }
    if (sizeBytes === 0) throw refuse('invalid_request', { message: 'The file is empty.' })
    return { blobId, sha256: digest.digest('hex'), sizeBytes, contentType }
  } catch (error) {
    await deleteBlob(pool, blobId).catch(() => {}) // or it is swept later
    throw error
  }
}

/** The same bytes in pieces of one size, the last one smaller. */
async function* piecesOf(source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let waiting: Buffer[] = []
  let bytes = 0
  for await (const chunk of source) {
    for (let from = 0; from < chunk.length; ) {
      const part = chunk.subarray(from, from + artefactPieceBytes - bytes)
      from += part.length
      waiting.push(part)
      bytes += part.length
      if (bytes < artefactPieceBytes) continue
      yield Buffer.concat(waiting)
      waiting = []
      bytes = 0
    }
  }
  if (bytes > 0) yield Buffer.concat(waiting)
}

/** Makes an upload an artefact of the project, for ever; what it has already is left as it is. */
export async function keep(
  tx: Tx,
  projectId: string,
  upload: Upload,
): Promise<{ artefact: StoredArtefact; isNew: boolean }> {
  const isNew = await insertArtefact(tx, projectId, upload)
  if (!isNew) await deleteBlob(tx, upload.blobId)
  const found = await selectArtefacts(tx, projectId, [upload.sha256])
  const artefact = found.find(({ contentType }) => contentType === upload.contentType)
  return { artefact: must(artefact, 'it is there, new or not'), isNew }
}

/** A file by its hash and type, piece by piece; undefined when there is none. */
export async function openArtefact(
  sql: Sql,
  wanted: { sha256: string; contentType: string; projectId?: string },
): Promise<{ sizeBytes: number; pieces: () => AsyncGenerator<Buffer> } | undefined> {
  const found = await findBlob(sql, wanted)
  return found && { sizeBytes: found.sizeBytes, pieces: () => read(sql, found) }
}

async function* read(sql: Sql, { blobId, sizeBytes }: { blobId: bigint; sizeBytes: number }): AsyncGenerator<Buffer> {
  for (let [n, sent] = [0, 0]; sent < sizeBytes; n++) {
    const piece = must(await selectPiece(sql, blobId, n), 'a blob that is named is whole')
    sent += piece.length
    yield piece
  }
}
