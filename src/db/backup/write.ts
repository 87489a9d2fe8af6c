import { createHash } from 'node:crypto'
import { createWriteStream } from 'node:fs'
import { open, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { Writable } from 'node:stream'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import { to as copyTo } from 'pg-copy-streams'
import { randomText } from '../../kernel/ids.ts'
import { backupPieceBytes } from '../../kernel/limits.ts'
import { appliedMigrations } from '../migrate.ts'
import { asTx, Pool, type Tx } from '../pool.ts'
import { factLine, inPieces, sectionEnd } from './file.ts'
import type { Manifest, TableSeal } from './manifest.ts'
import { loadOrder } from './order.ts'
import {
  beginSnapshot,
  copyInStatement,
  copyOutStatement,
  lockHere,
  portableSettings,
  selectPartitions,
  selectReferences,
  selectSequences,
  selectTables,
  type Table,
  unlockSinceHere,
} from './tables-store.ts'

export interface BackupTotals {
  tables: number
  rows: number
  /** Before compression. */
  bytes: number
}

/**
 * Writes the state of the database at one instant, beside the running service and without holding anybody up. `noteOf` adds
 * facts to the first line, read in the same snapshot.
 */
export async function writeBackup(
  url: string,
  to: Writable,
  { version, noteOf }: { version: string; noteOf: (tx: Tx) => Promise<Record<string, string>> },
): Promise<BackupTotals> {
  await using pool = new Pool(url, { name: 'backup', max: 1, settings: portableSettings })
  // Awaited here: the pool is closed after it, and until then nobody else would hear of a failure.
  return await pool.connected(async (client) => {
    const tx = asTx(client)
    await beginSnapshot(tx)
    const totals = { tables: 0, rows: 0, bytes: 0 }
    try {
      await pipeline(Readable.from(backupOf(tx, totals, { version, noteOf })), createGzip({ level: 4 }), to)
    } finally {
      await client.query('rollback')
    }
    return totals
  })
}

/** Whole or not at all, on disk when it resolves, readable by its owner only. `write` gets the file to fill. */
export async function writeWholeFile<T>(path: string, write: (to: Writable) => Promise<T>): Promise<T> {
  const draft = `${path}.new-${randomText(6)}`
  try {
    const result = await write(createWriteStream(draft, { flags: 'wx', mode: 0o600, flush: true }))
    await rename(draft, path)
    await using folder = await open(dirname(path), 'r')
    await folder.sync()
    return result
  } catch (error) {
    await rm(draft, { force: true })
    throw error
  }
}

async function* backupOf(
  tx: Tx,
  totals: BackupTotals,
  { version, noteOf }: Parameters<typeof writeBackup>[2],
): AsyncGenerator<Buffer> {
  const tables = loadOrder(await selectTables(tx), await selectReferences(tx))
  const [clock] = await tx.query<{ now: Date }>('select now() as now')
  yield factLine({
    turnpike_backup: 1,
    version,
    taken_at: clock?.now.toISOString() ?? '',
    migrations: await appliedMigrations(tx),
    tables,
    partitions: await selectPartitions(tx),
    note: await noteOf(tx),
  } satisfies Manifest)
  for (const table of tables) yield* sectionOf(tx, table, totals)
  // After the rows: a sequence is never behind what it gave to a row that is in the backup.
  const sequences = await selectSequences(tx)
  yield factLine({
    sequences: sequences.map(({ name, last }) => ({ name, last: last === null ? null : String(last) })),
  })
  yield factLine({ end: true, ...totals })
}

async function* sectionOf(tx: Tx, table: Table, totals: BackupTotals): AsyncGenerator<Buffer> {
  yield Buffer.from(`${copyInStatement(table)};\n`)
  const hash = createHash('sha256')
  const copy = copyTo(copyOutStatement(table))
  await lockHere(tx)
  for await (const piece of inPieces(tx.client.query(copy), backupPieceBytes)) {
    hash.update(piece)
    totals.bytes += piece.length
    yield piece
  }
  await unlockSinceHere(tx)
  totals.tables++
  totals.rows += copy.rowCount
  yield sectionEnd
  yield factLine({ table: table.name, rows: copy.rowCount, sha256: hash.digest('hex') } satisfies TableSeal)
}
