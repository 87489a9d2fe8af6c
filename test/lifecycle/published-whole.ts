import assert from 'node:assert/strict'
import { Pool } from '../../src/db/pool.ts'

/** What may never be found in the tables of publishing, by whoever looks at whatever moment. */
const wrongs: Record<string, string> = {
  'a number is missing, or was given and not used': `
    select s.scope_id, s.app_id, s.last, p.*
    from publish_seq s
    cross join lateral (
      select count(*) as used, max(seq) as newest
      from publication p
      where p.scope_id = s.scope_id and p.app_id = s.app_id
    ) p
    where s.last <> p.used or s.last <> p.newest`,
  'what holds is not the newest': `
    select pp.scope_id, pp.app_id, pp.experience_id, pp.seq
    from publication_pointer pp
    where pp.seq <> (
      select max(seq)
      from publication p
      where p.scope_id = pp.scope_id and p.app_id = pp.app_id and p.experience_id = pp.experience_id)`,
  'an Experience stands differently in its apps': `
    select pp.scope_id, pp.experience_id
    from publication_pointer pp
    join publication p on p.scope_id = pp.scope_id and p.app_id = pp.app_id and p.seq = pp.seq
    group by 1, 2
    having count(distinct (pp.status, p.version_number, p.published_at)) > 1
      or count(*) <> (select count(*) from app a join scope s on s.project_id = a.project_id where s.id = pp.scope_id)`,
  'an Experience says otherwise than its apps': `
    select e.id, e.status
    from experience e
    join publication_pointer pp on pp.scope_id = e.scope_id and pp.experience_id = e.id
    where e.status <> case pp.status when 'live' then 'published' when 'paused' then 'paused' else 'draft' end`,
  'a publication has no legs, or no version or build': `
    select p.scope_id, p.app_id, p.seq
    from publication p
    left join publication_leg l on l.scope_id = p.scope_id and l.app_id = p.app_id and l.seq = p.seq
    left join experience_build b on b.scope_id = p.scope_id and b.build_id = p.build_id
    left join experience_version v
      on v.scope_id = p.scope_id and v.experience_id = p.experience_id and v.version_number = p.version_number
    where l.seq is null or b.build_id is null or v.version_number is null`,
  'a leg is not stored, or what holds is not signed with the key that signs': `
    select l.scope_id, l.app_id, l.seq, l.leg_id
    from publication_leg l
    left join publication_pointer pp on pp.scope_id = l.scope_id and pp.app_id = l.app_id and pp.seq = l.seq
    left join signing_key_use u on u.scope_id = l.scope_id and u.app_id = '*'
    left join release r on r.scope_id = l.scope_id and r.descriptor_sha256 = l.descriptor_sha256
    left join release_signature s
      on s.scope_id = l.scope_id and s.descriptor_sha256 = l.descriptor_sha256 and s.signing_key_id = u.signing_key_id
    where r.descriptor is null or (pp.seq is not null and s.signature is null)`,
  'a key is active and signs nowhere, or signs and is not active': `
    select k.id, k.status
    from signing_key k
    left join signing_key_use u on u.signing_key_id = k.id
    where (k.status = 'active') <> (u.app_id is not null)`,
  'a version is missing': `
    select e.id, e.last_version
    from experience e
    where e.last_version <> (
      select count(*) from experience_version v where v.scope_id = e.scope_id and v.experience_id = e.id)`,
  'an Idempotency-Key is taken without an answer': 'select key from idempotency where status = 0',
}

/** Everything that was published in all of its apps, or nothing of it. */
export async function assertWhole(url: string): Promise<void> {
  await using pool = new Pool(url, { name: 'test', max: 1 })
  for (const [wrong, sql] of Object.entries(wrongs)) assert.deepEqual(await pool.query(sql), [], wrong)
}
