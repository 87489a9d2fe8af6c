import type { Tx } from '../../db/pool.ts'
import type { Scope } from '../../tenancy/index.ts'

export type SweepKind = 'stop' | 'hold' | 'resume' | 'move'

export interface Sweep {
  id: bigint
  scope: Scope
  experienceId: number
  appId: string
  kind: SweepKind
  buildId: string | null
  reason: string
  afterId: string | null
  at: number
}

/** For each app where the Experience is, or was, published; of a move the build that is live there now. */
export async function insertSweeps(
  tx: Tx,
  { scopeId, id: experienceId }: { scopeId: number; id: number },
  { kind, reason, appIds, at }: { kind: SweepKind; reason: string; appIds: string[] | null; at: Date },
): Promise<void> {
  await tx.query(
    `insert into journey_sweep (scope_id, experience_id, app_id, kind, build_id, reason, at_ms)
     select pp.scope_id, pp.experience_id, pp.app_id, $3, case when $3 = 'move' then p.build_id end, $4, $6
     from publication_pointer pp
     join publication p on p.scope_id = pp.scope_id and p.app_id = pp.app_id and p.seq = pp.seq
     where pp.scope_id = $1
       and pp.experience_id = $2
       and ($5::text[] is null or pp.app_id = any($5))
     order by pp.app_id`,
    [scopeId, experienceId, kind, reason, appIds, at.getTime()],
  )
}

interface SweepRow {
  id: bigint
  scope_id: number
  workspace_id: string
  project_id: string
  environment: Scope['environment']
  experience_id: number
  app_id: string
  kind: SweepKind
  build_id: string | null
  reason: string
  after_id: string | null
  at_ms: bigint
}

/** The oldest that nobody is at, and that no older one of its Experience and app comes before. */
export async function lockSweep(tx: Tx): Promise<Sweep | undefined> {
  const rows = await tx.query<SweepRow>(
    `select w.id, w.scope_id, p.workspace_id, s.project_id, s.environment, w.experience_id, w.app_id, w.kind, w.build_id,
       w.reason, w.after_id, w.at_ms
     from journey_sweep w
     join scope s on s.id = w.scope_id
     join project p on p.id = s.project_id
     where not exists (
       select
       from journey_sweep older
       where older.scope_id = w.scope_id
         and older.experience_id = w.experience_id
         and older.app_id = w.app_id
         and older.id < w.id)
     order by w.id
     limit 1
     for update of w skip locked`,
  )
  return rows.map((row) => ({
    id: row.id,
    scope: {
      ...{ scopeId: row.scope_id, workspaceId: row.workspace_id, projectId: row.project_id },
      environment: row.environment,
    },
    ...{ experienceId: row.experience_id, appId: row.app_id, kind: row.kind, buildId: row.build_id },
    ...{ reason: row.reason, afterId: row.after_id, at: Number(row.at_ms) },
  }))[0]
}

export async function advanceSweep(tx: Tx, { id }: Sweep, afterId: string): Promise<void> {
  await tx.query('update journey_sweep set after_id = $2 where id = $1', [id, afterId])
}

export async function endSweep(tx: Tx, { id }: Sweep): Promise<void> {
  await tx.query('delete from journey_sweep where id = $1', [id])
}

/** Whether what is open rests while the Experience is paused. */
export async function setHolds(
  tx: Tx,
  { scopeId, id: experienceId }: { scopeId: number; id: number },
  { holds, appIds }: { holds: boolean; appIds: string[] | null },
): Promise<void> {
  await tx.query(
    `update publication_pointer
     set holds = $3
     where scope_id = $1
       and experience_id = $2
       and ($4::text[] is null or app_id = any($4))`,
    [scopeId, experienceId, holds, appIds],
  )
}
