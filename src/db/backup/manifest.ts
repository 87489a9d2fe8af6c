import { StartError } from '../../kernel/start-error.ts'
import type { AppliedMigration } from '../migrate.ts'
import type { Partition, Table } from './tables-store.ts'

/** The first line of a backup: what it holds and what it takes to load it. */
export interface Manifest {
  turnpike_backup: 1
  /** Of the program that wrote it. */
  version: string
  /** The instant whose state it holds, by the database's clock. */
  taken_at: string
  /** The schema it was taken from. */
  migrations: AppliedMigration[]
  /** In the order in which they can be loaded. */
  tables: Table[]
  partitions: Partition[]
  /** What the writer wants to find again. */
  note: Record<string, string>
}

/** After the rows of a table. */
export interface TableSeal {
  table: string
  rows: number
  /** Of the rows as they stand in the file. */
  sha256: string
}

/** Throws StartError for the first line of anything else. */
export function readManifest(facts: unknown): Manifest {
  if (typeof facts !== 'object' || facts === null || !('turnpike_backup' in facts)) {
    throw new StartError('this is no backup of Turnpike')
  }
  if (facts.turnpike_backup !== 1) {
    throw new StartError(`the backup has format ${String(facts.turnpike_backup)}, which only a newer Turnpike reads`)
  }
  return facts as Manifest // written by us: the seals of the tables tell of damage
}

/** Why this program can't load it; undefined when it can. `known` are the migrations that it brings. */
export function objectionTo({ migrations, version }: Manifest, known: AppliedMigration[]): string | undefined {
  for (const { number, name, sha256 } of migrations) {
    const ours = known.find((migration) => migration.number === number)
    if (!ours)
      return `the backup was taken by Turnpike ${version} with migration ${name}, newer than this version knows`
    if (ours.sha256 !== sha256)
      return `migration ${name} of the backup is another than ours: use the version it was taken with`
  }
  return undefined
}

/** Names of our own making, and bounds as PostgreSQL writes them: nothing else becomes part of a statement. */
export function checkPartition({ name, bound }: Partition): void {
  const value = `(?:'[^'\\\\]*'|-?[0-9]+|MINVALUE|MAXVALUE)`
  const shapes = new RegExp(
    `^(?:FOR VALUES (?:FROM \\(${value}\\) TO \\(${value}\\)|IN \\(${value}(?:, ${value})*\\)|WITH \\(modulus [0-9]+, remainder [0-9]+\\))|DEFAULT)$`,
  )
  if (!/^[a-z0-9_]{1,63}$/.test(name) || !shapes.test(bound)) throw new StartError('the backup is damaged: a partition')
}
