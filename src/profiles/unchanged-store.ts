import type pg from 'pg'
import { float8s, int4s, int8s, uuids } from '../db/binary-array.ts'
import { raw, type Statement } from '../db/raw.ts'

/** What a remembered profile was made of. */
export interface Remembered {
  scopeId: number
  /** Of the catalogue. */
  revision: bigint
  customerId: string
  rev: bigint
  /** Sum of the versions of the customer's accounts. */
  versions: number
  /** Unix milliseconds; null: time alone changes nothing. */
  validUntil: number | null
}

/**
 * Rows for those that no longer hold, and for scopes whose catalogue moved: mostly none. No distinct id is looked up: whatever
 * takes one away from a customer raises that customer's number. Sums are of whole numbers far below 2^53.
 */
const readChanged: Statement = {
  name: 'profiles_changed',
  text: `
    select q.n
    from unnest($1::int[], $2::uuid[], $3::int8[], $4::float8[], $5::float8[]) with ordinality
      as q(scope_id, customer_id, rev, versions, valid_until, n)
    where coalesce((
        select rev
        from customer_rev
        where scope_id = q.scope_id
          and customer_id = q.customer_id
      ), 0) <> q.rev
      or coalesce((
        select sum(version::float8)
        from account
        where scope_id = q.scope_id
          and customer_id = q.customer_id
      ), 0) <> q.versions
      or q.valid_until <= (select extract(epoch from statement_timestamp())::float8 * 1000)
    union all
    select -s.n
    from unnest($6::int[], $7::int8[]) with ordinality as s(scope_id, revision, n)
    where (
      select revision
      from scope
      where id = s.scope_id
    ) is distinct from s.revision`,
}

/** Whether each still holds, by two look-ups of their own and one of their scope. */
export async function selectUnchanged(client: pg.ClientBase, items: readonly Remembered[]): Promise<boolean[]> {
  const catalogues = [...new Map(items.map((one) => [`${one.scopeId} ${one.revision}`, one])).values()]
  const rows = await raw(client, readChanged, [
    int4s(items.map(({ scopeId }) => scopeId)),
    uuids(items.map(({ customerId }) => customerId)),
    int8s(items.map(({ rev }) => rev)),
    float8s(items.map(({ versions }) => versions)),
    float8s(items.map(({ validUntil }) => validUntil)),
    int4s(catalogues.map(({ scopeId }) => scopeId)),
    int8s(catalogues.map(({ revision }) => revision)),
  ])
  const holds = items.map(() => true)
  for (const [text] of rows) {
    const n = Number(text)
    const moved = n < 0 ? catalogues[-n - 1] : undefined
    if (n > 0) holds[n - 1] = false
    else
      items.forEach((one, i) => {
        if (one.scopeId === moved?.scopeId && one.revision === moved.revision) holds[i] = false
      })
  }
  return holds
}
