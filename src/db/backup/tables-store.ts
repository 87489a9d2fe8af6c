import type { Sql, Tx } from '../pool.ts'

/** A table that is not a part of another one. */
export interface Table {
  name: string
  /** Those that are stored; computed ones are computed again. */
  columns: string[]
}

export interface Partition {
  table: string
  name: string
  /** As PostgreSQL writes it: `FOR VALUES FROM (…) TO (…)`. */
  bound: string
}

/** `from` refers to rows of `to`. */
export interface Reference {
  from: string
  to: string
}

export interface SequenceState {
  name: string
  /** The last number it gave; null when it gave none. */
  last: bigint | null
}

/** Every table of the schema but the list of migrations, which belongs to the program. */
export function selectTables(sql: Sql): Promise<Table[]> {
  return sql.query<Table>(
    `select c.relname::text as name, array_agg(a.attname::text order by a.attnum) as columns
     from pg_class c
     join pg_attribute a on a.attrelid = c.oid
     where c.relnamespace = current_schema()::regnamespace
       and c.relkind in ('r', 'p')
       and not c.relispartition
       and c.relname <> 'schema_migration'
       and a.attnum > 0
       and not a.attisdropped
       and a.attgenerated = ''
     group by c.relname
     order by c.relname`,
  )
}

export function selectReferences(sql: Sql): Promise<Reference[]> {
  return sql.query<Reference>(
    `select referring.relname::text as "from", referred.relname::text as "to"
     from pg_constraint
     join pg_class referring on referring.oid = conrelid
     join pg_class referred on referred.oid = confrelid
     where contype = 'f'
       and conparentid = 0
       and referring.relnamespace = current_schema()::regnamespace`,
  )
}

export function selectPartitions(sql: Sql): Promise<Partition[]> {
  return sql.query<Partition>(
    `select parent.relname::text as "table", child.relname::text as name,
       pg_get_expr(child.relpartbound, child.oid) as bound
     from pg_inherits
     join pg_class child on child.oid = inhrelid
     join pg_class parent on parent.oid = inhparent
     where child.relispartition
       and child.relkind = 'r'
       and parent.relnamespace = current_schema()::regnamespace
     order by child.relname`,
  )
}

export function selectSequences(sql: Sql): Promise<SequenceState[]> {
  return sql.query<SequenceState>(
    `select sequencename::text as name, last_value as last
     from pg_sequences
     where schemaname = current_schema()
     order by sequencename`,
  )
}

/** Names and the bound are quoted by the caller, or come from `pg_get_expr` in a form that was checked. */
export async function createPartition(tx: Tx, { table, name, bound }: Partition): Promise<void> {
  await tx.query(`create table ${quoted(name)} partition of ${quoted(table)} ${bound}`)
}

/** All at once: they refer to one another. */
export async function emptyTables(tx: Tx, tables: Table[]): Promise<void> {
  if (tables.length > 0) await tx.query(`truncate ${tables.map(({ name }) => quoted(name)).join(', ')}`)
}

export async function setSequence(tx: Tx, { name, last }: SequenceState): Promise<void> {
  if (last !== null) await tx.query(`select setval($1::regclass, $2)`, [quoted(name), last])
}

/** Of a partitioned table only a query can be copied out; of a plain one it costs nothing. */
export function copyOutStatement({ name, columns }: Table): string {
  return `copy (select ${columns.map(quoted).join(', ')} from ${quoted(name)}) to stdout`
}

export function copyInStatement({ name, columns }: Table): string {
  return `copy ${quoted(name)} (${columns.map(quoted).join(', ')}) from stdin`
}

/** One state of the whole database for as long as the transaction lasts. It takes no transaction id, so no lane waits for it. */
export async function beginSnapshot(tx: Tx): Promise<void> {
  await tx.query('begin isolation level repeatable read read only')
  await tx.query('set local statement_timeout = 0')
  await tx.query('set local idle_in_transaction_session_timeout = 0')
}

/**
 * Before and after a table is read: gives back the lock on it, but not the snapshot. A change of its schema elsewhere, and
 * everybody who queues behind that, waits for one table and not for the whole backup.
 */
export async function lockHere(tx: Tx): Promise<void> {
  await tx.query('savepoint one_table')
}

export async function unlockSinceHere(tx: Tx): Promise<void> {
  await tx.query('rollback to savepoint one_table')
}

/** Text that reads the same on every server. */
export const portableSettings = {
  timezone: 'UTC',
  datestyle: 'ISO, MDY',
  intervalstyle: 'postgres',
  extra_float_digits: '1',
  bytea_output: 'hex',
  client_encoding: 'UTF8',
}

function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`
}
