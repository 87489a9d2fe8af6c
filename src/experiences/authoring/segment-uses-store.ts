import type { Sql } from '../../db/pool.ts'
import type { Scope } from '../../tenancy/index.ts'

/** Who would be left without an answer were the Segment gone. */
export interface SegmentUse {
  object: 'experience' | 'experiment'
  id: string
}

/** Experiences that are live or paused with a version that names it, and experiments whose audience it is. */
export async function selectSegmentUses(sql: Sql, { scopeId }: Scope, segmentId: string): Promise<SegmentUse[]> {
  return sql.query<SegmentUse>(
    `select 'experience' as object, e.public_id as id
     from experience e
     where e.scope_id = $1
       and exists (
         select
         from publication_pointer pp
         join publication p on p.scope_id = pp.scope_id and p.app_id = pp.app_id and p.seq = pp.seq
         join experience_version v
           on v.scope_id = p.scope_id and v.experience_id = p.experience_id and v.version_number = p.version_number
         where pp.scope_id = e.scope_id
           and pp.experience_id = e.id
           and pp.status <> 'unpublished'
           and strpos(v.draft::text, '"' || $2 || '"') > 0)
     union all
     select 'experiment', x.public_id
     from experiment x
     join experiment_phase p on p.scope_id = x.scope_id and p.experiment_id = x.id and p.phase = x.phase
     where x.scope_id = $1
       and x.status not in ('concluded', 'archived')
       and p.audience_segment_id = $2
     order by object, id`,
    [scopeId, segmentId],
  )
}
