import { hash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { StartError } from '../kernel/start-error.ts'
import type { Pool, Sql } from './pool.ts'

const folder = new URL('./migrations/', import.meta.url)
/** Any fixed number: one migrator at a time per database. */
const lockKey = 7_210_001

/** A migration by what tells it from another one. */
export interface AppliedMigration {
  number: number
  name: string
  sha256: string
}

interface Migration extends AppliedMigration {
  sql: string
}

/**
 * Brings the database to the newest schema, or only `through` the migration of that number, whole or not at all. Safe to run
 * from several processes at once; gives the names it applied. Throws StartError.
 */
export async function migrate(pool: Pool, { through = Number.POSITIVE_INFINITY } = {}): Promise<string[]> {
  const known = await readMigrations()
  const wanted = known.filter(({ number }) => number <= through)
  return pool.transaction(async (tx) => {
    // Waiting for another migrator, and what is to be done, take as long as they take.
    await tx.query('set local statement_timeout = 0')
    await tx.query('select pg_advisory_xact_lock($1)', [lockKey])
    await tx.query(
      `create table if not exists schema_migration (
        number int primary key, name text not null, sha256 text not null, applied_at timestamptz not null default now())`,
    )
    const done = await tx.query<{ number: number; sha256: string }>('select number, sha256 from schema_migration')
    const applied: string[] = []
    for (const migration of wanted) {
      const before = done.find((row) => row.number === migration.number)
      if (before && before.sha256 !== migration.sha256)
        throw new StartError(`migration ${migration.name} was changed after it ran`)
      if (before) continue
      await tx.client.query(migration.sql)
      await tx.query('insert into schema_migration (number, name, sha256) values ($1, $2, $3)', [
        migration.number,
        migration.name,
        migration.sha256,
      ])
      applied.push(migration.name)
    }
    const newest = known.at(-1)?.number ?? 0
    const ahead = done.find((row) => row.number > newest)
    if (ahead)
      throw new StartError(`the database is at migration ${ahead.number}, newer than this version knows (${newest})`)
    return applied
  })
}

/** Names of migrations this version knows and the database lacks. */
export async function pendingMigrations(sql: Sql): Promise<string[]> {
  const done = await sql.query<{ number: number }>('select number from schema_migration')
  const numbers = new Set(done.map((row) => row.number))
  return (await readMigrations())
    .filter((migration) => !numbers.has(migration.number))
    .map((migration) => migration.name)
}

/** What the database has. */
export function appliedMigrations(sql: Sql): Promise<AppliedMigration[]> {
  return sql.query<AppliedMigration>('select number, name, sha256 from schema_migration order by number')
}

/** What this version brings. */
export async function knownMigrations(): Promise<AppliedMigration[]> {
  return (await readMigrations()).map(({ number, name, sha256 }) => ({ number, name, sha256 }))
}

async function readMigrations(): Promise<Migration[]> {
  const names = (await readdir(folder)).filter((name) => name.endsWith('.sql')).toSorted()
  return Promise.all(
    names.map(async (name) => {
      const sql = await readFile(new URL(name, folder), 'utf8')
      return { number: Number(name.slice(0, 4)), name, sql, sha256: hash('sha256', sql) }
    }),
  )
}
