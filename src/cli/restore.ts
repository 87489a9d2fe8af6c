import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { createGunzip } from 'node:zlib'
import { type Config, readConfig } from '../config.ts'
import { BackupReader } from '../db/backup/file.ts'
import { checkBackup, loadBackup } from '../db/backup/load.ts'
import { type Manifest, objectionTo, readManifest } from '../db/backup/manifest.ts'
import { checkServer } from '../db/check-server.ts'
import { startEmbedded } from '../db/embedded.ts'
import { knownMigrations, migrate } from '../db/migrate.ts'
import { Pool } from '../db/pool.ts'
import { beginGeneration } from '../events/index.ts'
import { StartError } from '../kernel/start-error.ts'
import { readMasterKey } from '../master-key.ts'
import { hasWorkspaces, opensInstance } from '../tenancy/index.ts'
import { type Input, textOf } from './command.ts'
import { print, remark } from './print.ts'
import { bury, checkTombstones, deleteAgain } from './tombstones.ts'

interface Backup {
  manifest: Manifest
  reader: BackupReader
}

/** `restore <file>`: loads a backup into an empty database, whole or not at all. */
export async function restore(input: Input): Promise<void> {
  const [file = ''] = input.words
  const tombstones = textOf(input, 'tombstones')
  const config = readConfig()
  if (tombstones !== undefined) await checkTombstones(tombstones)
  await withBackup(file, async (backup) => {
    const objection = objectionTo(backup.manifest, await knownMigrations())
    if (objection !== undefined) throw new StartError(objection)
    await checkMasterKey(config, backup.manifest)
    await using stack = new AsyncDisposableStack()
    const log = { info() {}, warn: remark, error: remark }
    const url = config.databaseUrl ?? stack.use(await startEmbedded({ dataDir: config.dataDir, log })).url
    const pool = stack.use(new Pool(url, { name: 'restore', max: 1, settings: { statement_timeout: '0' } }))
    await checkServer(pool)
    await migrate(pool, { through: Math.max(...backup.manifest.migrations.map(({ number }) => number)) })
    if (await hasWorkspaces(pool)) {
      throw new StartError('the database is not empty: restore into a new DATA_DIR, or a new database for DATABASE_URL')
    }
    // In the transaction that brings the rows: nobody ever sees the old log in its old order.
    const { rows, tables } = await loadBackup(url, backup, async (tx) => {
      await beginGeneration(tx)
      if (tombstones !== undefined) await bury(tx, tombstones)
    })
    const applied = await migrate(pool)
    const deleted = await deleteAgain(pool, config)
    print(`restored ${rows} rows of ${tables} tables, as they were at ${backup.manifest.taken_at}`)
    if (applied.length > 0) print(`then applied ${applied.join(', ')}`)
    if (deleted > 0) print(`then deleted ${deleted} customers again`)
    if (tombstones === undefined)
      print('Whoever was deleted since is there again: turnpike tombstones apply <file>, if you have a list')
    print('Next: turnpike ledger verify, then start. Processes that ran on the lost database must be started anew.')
  })
}

/** `backup check <file>`: whether it is whole and what it holds, without a database. */
export async function checkBackupFile({ words: [file = ''] }: Input): Promise<void> {
  await withBackup(file, async (backup) => {
    const { rows, tables } = await checkBackup(backup)
    const { version, taken_at, migrations } = backup.manifest
    print(`whole: ${rows} rows of ${tables} tables, as they were at ${taken_at}`)
    print(`taken by Turnpike ${version} at migration ${migrations.at(-1)?.name ?? 'none'}`)
    const objection = objectionTo(backup.manifest, await knownMigrations())
    if (objection !== undefined) throw new StartError(objection)
  })
}

async function withBackup(file: string, work: (backup: Backup) => Promise<void>): Promise<void> {
  const source: Readable = file === '-' ? process.stdin : createReadStream(file)
  const text = createGunzip()
  source.on('error', (error) => text.destroy(error))
  // Whoever reads next hears of it; a restore that ended for another reason no longer does.
  text.on('error', () => {})
  source.pipe(text)
  try {
    const reader = new BackupReader(text)
    await work({ manifest: readManifest(await reader.facts()), reader })
  } catch (error) {
    throw inWords(error, file)
  } finally {
    source.destroy()
    text.destroy()
  }
}

function inWords(error: unknown, file: string): unknown {
  const { code = '', message } = error as NodeJS.ErrnoException // of the file system or of zlib, when it is one
  if (code === 'Z_BUF_ERROR') return new StartError('the backup ends too early: it was not written or copied whole')
  if (code.startsWith('Z_')) return new StartError('this is no backup of Turnpike, or it is damaged')
  if (['ENOENT', 'EACCES', 'EISDIR'].includes(code)) return new StartError(`${file} cannot be read: ${message}`)
  return error
}

/** Before anything is made: a database without its key could not start. */
async function checkMasterKey(config: Config, { note }: Manifest): Promise<void> {
  const path = join(config.dataDir, 'master.key')
  if (!config.masterKey && !(await stat(path).catch(() => undefined))) {
    throw new StartError(`the backup was sealed with a master key: put it to ${path} (mode 0600), or set MASTER_KEY`)
  }
  if (!opensInstance(await readMasterKey(config), note.sealed_secrets ?? '')) {
    throw new StartError(`this is not the master key of the backup: bring the one that was in use at its time`)
  }
}
