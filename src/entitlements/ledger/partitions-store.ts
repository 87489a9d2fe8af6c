import type { Tx } from '../../db/pool.ts'

/** Any fixed number: one process at a time makes partitions. */
const lockKey = 7_210_004

export async function lockPartitions(tx: Tx): Promise<void> {
  await tx.query('select pg_advisory_xact_lock($1)', [lockKey])
}

/** The month `offset` months from the current one by the database clock and `offsetMs`, in UTC, as `2026m11` with its bounds. */
export async function selectMonth(
  tx: Tx,
  offset: number,
  offsetMs: number,
): Promise<{ name: string; from: bigint; until: bigint }> {
  const [row] = await tx.query<{ name: string; from: bigint; until: bigint }>(
    `select to_char(month, 'YYYY"m"MM') as name,
       (extract(epoch from month) * 1000)::bigint as "from",
       (extract(epoch from month + interval '1 month') * 1000)::bigint as "until"
     from (select date_trunc('month', (clock_timestamp() + $2 * interval '1 millisecond') at time zone 'UTC')
         + $1::int * interval '1 month') as m(month)`,
    [offset, offsetMs],
  )
  if (!row) throw new Error('a row without a table is always there')
  return row
}

export async function partitionExists(tx: Tx, name: string): Promise<boolean> {
  const [row] = await tx.query<{ there: boolean }>(`select to_regclass($1) is not null as there`, [`entry_${name}`])
  return row?.there === true
}

/** Made apart and attached: writers of other months are not held up, as `create table … partition of` would. */
export async function createPartition(
  tx: Tx,
  { name, from, until }: { name: string; from: bigint; until: bigint },
): Promise<void> {
  await tx.query(`create table entry_${name} (like entry including defaults including constraints)`)
  await tx.query(`alter table entry attach partition entry_${name} for values from (${from}) to (${until})`)
}
