import { createHash } from 'node:crypto'
import { pipeline } from 'node:stream/promises'
import { from as copyFrom } from 'pg-copy-streams'
import { StartError } from '../../kernel/start-error.ts'
import { Pool, type Tx } from '../pool.ts'
import type { BackupReader } from './file.ts'
import { checkPartition, type Manifest, type TableSeal } from './manifest.ts'
import {
  copyInStatement,
  createPartition,
  emptyTables,
  portableSettings,
  selectPartitions,
  selectTables,
  setSequence,
  type Table,
} from './tables-store.ts'
import type { BackupTotals } from './write.ts'

/** What takes the rows of each table, and says how many there were. */
type Take = (table: Table, rows: AsyncIterable<Buffer>) => Promise<number>

/**
 * Loads a backup into a database that has its schema and nothing of worth in it, in one transaction. `finish` runs in that
 * transaction when everything is there. Throws StartError for a damaged file, and then nothing has changed.
 */
export async function loadBackup(
  url: string,
  { manifest, reader }: { manifest: Manifest; reader: BackupReader },
  finish: (tx: Tx) => Promise<void>,
): Promise<BackupTotals> {
  const settings = { ...portableSettings, statement_timeout: '0', idle_in_transaction_session_timeout: '0' }
  await using pool = new Pool(url, { name: 'restore', max: 1, settings })
  // Awaited here: the pool is closed after it, and until then nobody else would hear of a failure.
  return await pool.transaction(async (tx) => {
    const there = new Set((await selectPartitions(tx)).map(({ name }) => name))
    for (const partition of manifest.partitions) {
      checkPartition(partition)
      if (!there.has(partition.name)) await createPartition(tx, partition)
    }
    const known = new Map((await selectTables(tx)).map((table) => [table.name, new Set(table.columns)]))
    await emptyTables(tx, await selectTables(tx))
    const totals = await readSections({ manifest, reader }, async (table, rows) => {
      const columns = known.get(table.name)
      if (!columns || table.columns.some((column) => !columns.has(column))) throw damaged(`table ${table.name}`)
      const copy = tx.client.query(copyFrom(copyInStatement(table)))
      await pipeline(rows, copy)
      return copy.rowCount
    })
    for (const { name, last } of totals.sequences)
      await setSequence(tx, { name, last: last === null ? null : BigInt(last) })
    await finish(tx)
    return totals
  })
}

/** Reads a backup to its end and holds every table against its seal, without a database. Throws StartError. */
export async function checkBackup(backup: { manifest: Manifest; reader: BackupReader }): Promise<BackupTotals> {
  return readSections(backup, async (_, rows) => {
    let count = 0
    for await (const piece of rows) for (const byte of piece) if (byte === 0x0a) count++
    return count
  })
}

interface Whole extends BackupTotals {
  sequences: { name: string; last: string | null }[]
}

async function readSections(
  { manifest, reader }: { manifest: Manifest; reader: BackupReader },
  take: Take,
): Promise<Whole> {
  const totals = { tables: 0, rows: 0, bytes: 0 }
  for (const table of manifest.tables) {
    await reader.line()
    const hash = createHash('sha256')
    const rows = await take(table, counted(reader.rows(), hash, totals))
    const seal = (await reader.facts()) as TableSeal // written by us; damage shows in its parts
    if (seal.table !== table.name || seal.rows !== rows || seal.sha256 !== hash.digest('hex'))
      throw damaged(`table ${table.name}`)
    totals.tables++
    totals.rows += rows
  }
  const { sequences } = (await reader.facts()) as Whole // as above
  const end = (await reader.facts()) as { end?: boolean; rows?: number } // as above
  if (end.end !== true || end.rows !== totals.rows || !Array.isArray(sequences)) throw damaged('its end')
  return { ...totals, sequences }
}

async function* counted(
  rows: AsyncIterable<Buffer>,
  hash: ReturnType<typeof createHash>,
  totals: BackupTotals,
): AsyncGenerator<Buffer> {
  for await (const piece of rows) {
    hash.update(piece)
    totals.bytes += piece.length
    yield piece
  }
}

function damaged(what: string): StartError {
  return new StartError(`the backup is damaged: ${what}`)
}
