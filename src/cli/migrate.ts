import { readConfig } from '../config.ts'
import { migrate } from '../db/migrate.ts'
import { Pool } from '../db/pool.ts'
import { StartError } from '../kernel/start-error.ts'
import { print } from './print.ts'

/** `migrate`: the step that every start takes, by itself. */
export async function runMigrations(): Promise<void> {
  const { databaseUrl } = readConfig()
  if (!databaseUrl) throw new StartError('migrate needs DATABASE_URL; the embedded database is migrated by every start')
  await using pool = new Pool(databaseUrl, { name: 'migrate', max: 1 })
  const applied = await migrate(pool)
  print(applied.length === 0 ? 'nothing to apply' : `applied ${applied.join(', ')}`)
}
