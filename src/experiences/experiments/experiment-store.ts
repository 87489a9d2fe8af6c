import { takeNamed } from '../../db/named-lock.ts'
import type { Sql, Tx } from '../../db/pool.ts'
import type { Page } from '../../kernel/page.ts'
import type { Scope } from '../../tenancy/index.ts'
import type { Experiment, ExperimentKind, ExperimentStatus, Terms } from './types.ts'

interface Row {
  scope_id: number
  id: number
  public_id: string
  key: string
  name: string
  kind: ExperimentKind
  status: ExperimentStatus
  phase: number
  winner_variant_id: string | null
  created_at: Date
  seed: string
  variants: string
  weight_periods: string
  coverage: number
  audience_segment_id: string | null
  namespace: string | null
  metrics: string
  started_at_ms: number | null
}

const columns = `x.scope_id, x.id, x.public_id, x.key, x.name, x.kind, x.status, p.phase, x.winner_variant_id, x.created_at,
  p.seed, p.variants, p.weight_periods, p.coverage, p.audience_segment_id, p.namespace, p.metrics,
  p.started_at_ms::float8 as started_at_ms`
const current = `experiment x join experiment_phase p on p.scope_id = x.scope_id and p.experiment_id = x.id and p.phase = x.phase`

function experimentOf(row: Row): Experiment {
  return {
    ...{ scopeId: row.scope_id, id: row.id, publicId: row.public_id, key: row.key, name: row.name, kind: row.kind },
    ...{ status: row.status, phase: row.phase, winnerVariantId: row.winner_variant_id, seed: row.seed },
    // Stored by us.
    variants: JSON.parse(row.variants) as Experiment['variants'],
    weightPeriods: JSON.parse(row.weight_periods) as number[][],
    coverage: row.coverage,
    audienceSegmentId: row.audience_segment_id,
    namespace: row.namespace === null ? null : (JSON.parse(row.namespace) as Experiment['namespace']),
    metrics: JSON.parse(row.metrics) as Experiment['metrics'],
    startedAtMs: row.started_at_ms,
    createdAt: row.created_at,
  }
}

/** Undefined when the key is taken. */
export async function insertExperiment(
  tx: Tx,
  { scopeId }: Scope,
  { publicId, key, name, kind }: Pick<Experiment, 'publicId' | 'key' | 'name' | 'kind'>,
): Promise<number | undefined> {
  const rows = await tx.query<{ id: number }>(
    `insert into experiment (scope_id, public_id, key, name, kind)
     values ($1, $2, $3, $4, $5)
     on conflict (scope_id, key) do nothing
     returning id`,
    [scopeId, publicId, key, name, kind],
  )
  return rows[0]?.id
}

/** The terms of a phase, new or anew. */
export async function upsertPhase(
  tx: Tx,
  { scopeId, id, phase }: Pick<Experiment, 'scopeId' | 'id' | 'phase'>,
  terms: Terms & Pick<Experiment, 'weightPeriods' | 'startedAtMs'>,
): Promise<void> {
  await tx.query(
    `insert into experiment_phase
       (scope_id, experiment_id, phase, seed, variants, weight_periods, coverage, audience_segment_id, namespace, metrics,
        started_at_ms)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
     on conflict (scope_id, experiment_id, phase) do update
     set seed = excluded.seed, variants = excluded.variants, weight_periods = excluded.weight_periods,
       coverage = excluded.coverage, audience_segment_id = excluded.audience_segment_id, namespace = excluded.namespace,
       metrics = excluded.metrics, started_at_ms = excluded.started_at_ms`,
    [
      ...[scopeId, id, phase, terms.seed, JSON.stringify(terms.variants), JSON.stringify(terms.weightPeriods)],
      ...[terms.coverage, terms.audienceSegmentId, terms.namespace && JSON.stringify(terms.namespace)],
      ...[JSON.stringify(terms.metrics), terms.startedAtMs],
    ],
  )
}

export async function endPhase(tx: Tx, { scopeId, id, phase }: Experiment, atMs: number): Promise<void> {
  await tx.query(
    `update experiment_phase
     set ended_at_ms = $4
     where scope_id = $1
       and experiment_id = $2
       and phase = $3`,
    [scopeId, id, phase, atMs],
  )
}

export async function updateExperimentRow(
  tx: Tx,
  { scopeId, id }: Experiment,
  { name, status, phase, winnerVariantId }: Pick<Experiment, 'name' | 'status' | 'phase' | 'winnerVariantId'>,
): Promise<void> {
  await tx.query(
    `update experiment
     set name = $3, status = $4, phase = $5, winner_variant_id = $6
     where scope_id = $1
       and id = $2`,
    [scopeId, id, name, status, phase, winnerVariantId],
  )
}

/** One change of experiments of a scope after another: their namespaces are a matter of all of them. */
export async function lockExperiments(tx: Tx, { scopeId }: Scope): Promise<void> {
  await takeNamed(tx, { scopeId, name: 'experiment' })
}

export async function countExperiments(tx: Tx, { scopeId }: Scope): Promise<number> {
  const [row] = await tx.query<{ n: number }>('select count(*)::int as n from experiment where scope_id = $1', [
    scopeId,
  ])
  return row?.n ?? 0
}

/** By id or key. */
export async function selectExperiments(sql: Sql, scopes: readonly Scope[], idOrKey: string): Promise<Experiment[]> {
  const rows = await sql.query<Row>(
    `select ${columns}
     from ${current}
     where x.scope_id = any($1)
       and (x.public_id = $2 or x.key = $2)
     order by x.id`,
    [scopes.map(({ scopeId }) => scopeId), idOrKey],
  )
  return rows.map(experimentOf)
}

/** By public id. */
export async function selectExperimentsNamed(
  sql: Sql,
  { scopeId }: Scope,
  publicIds: readonly string[],
): Promise<Experiment[]> {
  const rows = await sql.query<Row>(
    `select ${columns}
     from ${current}
     where x.public_id = any($2)
       and x.scope_id = $1`,
    [scopeId, publicIds],
    'experiments_named',
  )
  return rows.map(experimentOf)
}

/** Newest first, without archived ones. */
export async function selectExperimentPage(
  sql: Sql,
  { scopeId }: Scope,
  { limit, after }: Page,
): Promise<Experiment[]> {
  const rows = await sql.query<Row>(
    `select ${columns}
     from ${current}
     where x.scope_id = $1
       and x.status <> 'archived'
       and ($2::text is null or x.id < (select id from experiment where public_id = $2))
     order by x.id desc
     limit $3`,
    [scopeId, after, limit],
  )
  return rows.map(experimentOf)
}

/** All of a scope, archived ones too: what drafts may name. */
export async function selectAllExperiments(sql: Sql, { scopeId }: Scope): Promise<Experiment[]> {
  const rows = await sql.query<Row>(
    `select ${columns}
     from ${current}
     where x.scope_id = $1
     order by x.id`,
    [scopeId],
  )
  return rows.map(experimentOf)
}

/** The terms of one phase, as if it were the current one. */
export async function selectPhase(
  sql: Sql,
  { scopeId, id }: Experiment,
  phase: number,
): Promise<Experiment | undefined> {
  const rows = await sql.query<Row>(
    `select ${columns}
     from experiment x
     join experiment_phase p on p.scope_id = x.scope_id and p.experiment_id = x.id
     where x.scope_id = $1
       and x.id = $2
       and p.phase = $3`,
    [scopeId, id, phase],
  )
  return rows.map(experimentOf)[0]
}
