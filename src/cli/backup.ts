import { resolve } from 'node:path'
import type { Writable } from 'node:stream'
import { writeBackup, writeWholeFile } from '../db/backup/write.ts'
import { systemClock } from '../kernel/clock.ts'
import { readSealedSecrets } from '../tenancy/index.ts'
import { version } from '../version.ts'
import type { Input } from './command.ts'
import { withDatabase } from './database.ts'
import { print, remark } from './print.ts'

/** `backup [file]`: everything in the database at one instant, beside the running service. */
export async function backup({ words: [file = fileName()] }: Input): Promise<void> {
  await withDatabase('backup', async ({ config, url }) => {
    const write = (to: Writable) => {
      return writeBackup(url, to, {
        version,
        noteOf: async (tx) => ({ sealed_secrets: (await readSealedSecrets(tx)) ?? '' }),
      })
    }
    const toStdout = file === '-'
    const { tables, rows, bytes } = toStdout ? await write(process.stdout) : await writeWholeFile(resolve(file), write)
    const say = toStdout ? remark : print
    say(`backed up ${rows} rows of ${tables} tables, ${bytes} bytes before compression${toStdout ? '' : ` to ${file}`}`)
    say('Not in it, and needed to restore:')
    say(
      config.masterKey
        ? '  MASTER_KEY. Keep it in another place than the backup: without it no database of this backup starts.'
        : `  ${config.dataDir}/master.key. Keep a copy in another place than the backup: without it no database of it starts.`,
    )
    say('  your settings (environment variables).')
  })
}

/** Sorts by time. */
function fileName(): string {
  const stamp = new Date(systemClock.now()).toISOString().replaceAll(/[-:]|\.\d+/g, '')
  return `turnpike-${stamp}.sql.gz`
}
