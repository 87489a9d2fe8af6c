import type { Pool } from '../../db/pool.ts'
import { type Json, propertyOf } from '../../events/index.ts'
import { refuse } from '../../kernel/errors.ts'
import type { Scope } from '../../tenancy/index.ts'
import type { PlacedLeaf } from './compile.ts'
import type { Condition } from './definition.ts'
import { totalOf } from './leaf.ts'
import type { Segment } from './manage-store.ts'
import { setOf } from './set-store.ts'
import { type CustomerState, emptyState, parseState } from './state.ts'
import { type StoredCustomer, selectHeader, selectStates } from './state-store.ts'
import { truthOf } from './truth.ts'

/** Why a customer is or is not a member, by the definition that serves. Instants in Unix milliseconds. */
export interface Explanation {
  member: boolean
  since: number | null
  leaves: LeafExplanation[]
}

export interface LeafExplanation {
  /** Its place, such as `definition.where.all[0].performed`. */
  path: string
  holds: boolean
  /** What was counted, when it happened, what the property is, when the Feature is active; null: nothing is known. */
  observed: Json
  /** When time alone changes it next. */
  changesAt: number | null
}

/** 409 while no definition of the segment serves yet, 404 for an unknown customer. */
export async function explainMembership(
  pool: Pool,
  scope: Scope,
  { segment, customerId, now }: { segment: Segment; customerId: string; now: number },
): Promise<Explanation> {
  return pool.transaction(async (tx) => {
    const header = await selectHeader(tx, scope, { dueBy: null, limit: 0 })
    const set = header && (await setOf(tx, scope, header.revision))
    const version = set?.versions.find((one) => one.segmentId === segment.id && !one.pending)
    if (!version) throw refuse('conflict', { message: 'No definition of the segment serves yet.' })
    const stored = (await selectStates(tx, scope, new Map([[customerId, true]]), { newWhole: true })).get(customerId)
    if (!stored) throw refuse('not_found')
    const state = stored.text === null ? emptyState() : parseState(stored.text)
    const at = Math.max(now, state.now)
    const paths = pathsOf(version.condition)
    return {
      member: state.members.has(version.id),
      since: state.members.get(version.id) ?? null,
      leaves: version.leaves.map((placed, i) => {
        const { holds, until } = truthOf(placed, state, at)
        return { path: paths[i] ?? '', holds, observed: observe(placed, state, stored, at), changesAt: until }
      }),
    }
  })
}

function pathsOf(condition: Condition): string[] {
  if (condition.kind === 'leaf') return [condition.path]
  return condition.kind === 'not' ? pathsOf(condition.of) : condition.of.flatMap(pathsOf)
}

function observe(
  { id, leaf, version }: PlacedLeaf,
  state: CustomerState,
  { properties }: StoredCustomer,
  now: number,
): Json {
  switch (leaf.kind) {
    case 'property':
      return properties ? (propertyOf(properties, leaf.key) ?? null) : null
    case 'performed':
      return Number(totalOf(leaf, state.leaves.get(id), now))
    case 'sum':
      return Number(totalOf(leaf, state.leaves.get(id), now)) / 1e6
    case 'first':
    case 'last': {
      const at = state.leaves.get(id)
      return typeof at === 'number' ? new Date(at).toISOString() : null
    }
    case 'segment':
      return state.members.has(version.refs.get(leaf.id) ?? 0)
    case 'feature':
      return (state.access.get(leaf.feature)?.intervals ?? []).map((interval) =>
        interval.map((edge) => (edge === null ? null : new Date(edge).toISOString())),
      )
  }
}
