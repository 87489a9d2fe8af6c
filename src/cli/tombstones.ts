import { resolve } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { Config } from '../config.ts'
import { deleteBuried, insertBuried, listTombstones } from '../customers/index.ts'
import { writeWholeFile } from '../db/backup/write.ts'
import type { Pool, Tx } from '../db/pool.ts'
import { systemClock as clock } from '../kernel/clock.ts'
import { readMasterKey } from '../master-key.ts'
import { participantsOf } from '../participants.ts'
import { openInstance } from '../tenancy/index.ts'
import type { Input } from './command.ts'
import { withDatabase } from './database.ts'
import { print, remark } from './print.ts'
import { readTombstones, tombstoneLines } from './tombstone-file.ts'

/** `tombstones export <file>`: who was deleted, without saying who, for databases restored from before it. */
export async function exportTombstones({ words: [file = ''] }: Input): Promise<void> {
  await withDatabase('tombstones export', async ({ pool }) => {
    const lines = Readable.from(tombstoneLines(listTombstones(pool)))
    if (file === '-') await pipeline(lines, process.stdout, { end: false })
    else await writeWholeFile(resolve(file), (to) => pipeline(lines, to))
  })
}

/** `tombstones apply <file>`: deletes whoever the list names. Again it does nothing. */
export async function applyTombstones({ words: [file = ''] }: Input): Promise<void> {
  await checkTombstones(file)
  await withDatabase('tombstones apply', async ({ config, pool }) => {
    let added = 0
    // One by one: an open transaction that has written holds every lane up.
    for await (const slice of readTombstones(file)) added += await pool.transaction((tx) => insertBuried(tx, slice))
    const deleted = await deleteAgain(pool, config)
    print(`${added} tombstones added, ${deleted} customers deleted again`)
  })
}

/** Reads it to its end. Throws StartError when it is not whole. */
export async function checkTombstones(file: string): Promise<void> {
  for await (const _ of readTombstones(file));
}

/** Puts the list into the database: from the commit on, these ids are refused. Gives how many were new. */
export async function bury(tx: Tx, file: string): Promise<number> {
  let added = 0
  for await (const slice of readTombstones(file)) added += await insertBuried(tx, slice)
  return added
}

function say(_: object, message: string): void {
  remark(message)
}

/** Gives how many there were. What is stored of them is erased when the service runs. */
export async function deleteAgain(pool: Pool, config: Config): Promise<number> {
  const masterKey = await readMasterKey(config)
  const { tombstoneKey } = await pool.transaction((tx) => openInstance(tx, masterKey))
  const services = { tombstoneKey, log: { warn: say, error: say } }
  return deleteBuried(pool, { tombstoneKey, participants: participantsOf(clock, services) })
}
