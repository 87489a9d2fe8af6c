import type { Pool, Tx } from '../../db/pool.ts'
import type { Clock } from '../../kernel/clock.ts'
import { segmentPreviewMsMax, segmentPreviewSamples, segmentStepCustomers } from '../../kernel/limits.ts'
import type { Scope } from '../../tenancy/index.ts'
import { type CompiledSet, compile } from './compile.ts'
import { checkAsked } from './manage.ts'
import { selectSegments } from './manage-store.ts'
import { parseNewDefinition } from './parse-definition.ts'
import { countAgain } from './process.ts'
import { countCustomers } from './read-store.ts'
import { definitionsOf } from './set-store.ts'
import { selectStates } from './state-store.ts'
import { nextCustomers } from './steps-store.ts'
import { close, open, type Visit } from './visit.ts'

export interface Preview {
  /** Members, or what the customers seen make likely. */
  count: number
  /** All customers were seen. */
  exact: boolean
  seen: number
  total: number
  /** Ids of some of those found. */
  samples: string[]
}

/**
 * Whom a definition would have, by counting events as a backfill does, for a few seconds at most. Customers are seen in the
 * order of their ids, which are hashes: the first ones are as good as any for an estimate. Writes nothing.
 */
export async function previewSegment(
  pool: Pool,
  scope: Scope,
  { definition, keptDays }: { definition: unknown; keptDays: number },
  clock: Clock,
): Promise<Preview> {
  const condition = parseNewDefinition(definition, keptDays)
  checkAsked(await selectSegments(pool, scope), { publicId: '', condition })
  const { definitions } = await definitionsOf(pool, scope)
  const serving = definitions.filter(({ pending }) => !pending)
  const id = Math.max(0, ...serving.map((one) => one.id)) + 1
  const set = compile([...serving, { id, segmentId: 0, publicId: '', pending: true, condition }])
  const found: string[] = []
  const until = performance.now() + segmentPreviewMsMax
  let [seen, after, more] = [0, firstUuid, true]
  while (more && performance.now() < until) {
    const page = await pool.transaction((tx) => look(tx, scope, { set, id, after, now: clock.now() }))
    found.push(...page.members)
    seen += page.customerIds.length
    after = page.customerIds.at(-1) ?? after
    more = page.customerIds.length === segmentStepCustomers
  }
  const total = more ? Math.max(await countCustomers(pool, scope), seen) : seen
  const count = more ? Math.round((found.length / Math.max(seen, 1)) * total) : found.length
  return { count, exact: !more, seen, total, samples: found.slice(0, segmentPreviewSamples) }
}

const firstUuid = '00000000-0000-0000-0000-000000000000'
const lastUuid = 'ffffffff-ffff-ffff-ffff-ffffffffffff'

async function look(
  tx: Tx,
  scope: Scope,
  { set, id, after, now }: { set: CompiledSet; id: number; after: string; now: number },
): Promise<{ customerIds: string[]; members: string[] }> {
  const customerIds = await nextCustomers(tx, scope, { after, limit: segmentStepCustomers })
  const stored = await selectStates(tx, scope, new Map(customerIds.map((one) => [one, true])), { newWhole: true })
  const opened = [...stored].map(([customerId, customer]) =>
    open(set, visitTo(customerId), customer, { now, walkedTo: lastUuid }),
  )
  // No lane waits for it, and a customer of whom a part is known is no member yet.
  await countAgain(tx, scope, set, opened, { budget: { events: Number.MAX_SAFE_INTEGER, ms: segmentPreviewMsMax } })
  const members = opened.flatMap((one) => {
    const { state } = close(set, one).opened
    return state.members.has(id) ? [one.visit.customerId] : []
  })
  return { customerIds, members }
}

function visitTo(customerId: string): Visit {
  return { customerId, events: [], keys: new Set(), whole: false, recount: false, cause: 'backfill', pos: null }
}
