import type { Tx } from '../../db/pool.ts'
import type { Json } from '../../events/index.ts'
import type { Scope } from '../../tenancy/index.ts'
import type { CustomerMerge, MergeParticipant } from '../types.ts'
import { forgetAside } from './aside-store.ts'
import type { CompiledSet } from './compile.ts'
import { setOf } from './set-store.ts'
import { emptyState, joinStates, parseState, stateText } from './state.ts'
import {
  deleteStates,
  isRecounting,
  type MembershipWrite,
  mark,
  ring,
  type StoredCustomer,
  selectHeader,
  selectStates,
  upsertStates,
  writeMemberships,
} from './state-store.ts'

/** Counts add up on a merge, and the survivor is asked everything again; a split has both customers counted again. */
export const segmentParticipant: MergeParticipant = {
  name: 'segments',
  async merge(tx, scope, merges) {
    const header = await selectHeader(tx, scope, { dueBy: null, limit: 0 })
    if (header) {
      const set = await setOf(tx, scope, header.revision)
      for (const merge of merges) await mergeOne(tx, scope, set, merge)
    }
    return merges.map((): Json => null)
  },
  async split(tx, scope, { sourceCustomerId, targetCustomerId }) {
    await mark(tx, scope, [sourceCustomerId, targetCustomerId], 'recount')
    await ring(tx, scope)
  },
}

async function mergeOne(
  tx: Tx,
  scope: Scope,
  set: CompiledSet,
  { sourceCustomerId, targetCustomerId }: CustomerMerge,
): Promise<void> {
  const asked = new Map([sourceCustomerId, targetCustomerId].map((id) => [id, false]))
  const stored = await selectStates(tx, scope, asked, { newWhole: false })
  const [source, target] = [stateIn(stored, sourceCustomerId), stateIn(stored, targetCustomerId)]
  const joined = joinStates(set, source, target)
  const members: MembershipWrite[] = []
  for (const [versionId, since] of source.members) {
    const version = set.byId.get(versionId)
    if (!version) continue
    members.push({ versionId, customerId: sourceCustomerId, since: null, told: true })
    const told = joined.told.has(version.segmentId)
    members.push({ versionId, customerId: targetCustomerId, since: joined.members.get(versionId) ?? since, told })
  }
  await writeMemberships(tx, scope, members)
  const again = await isRecounting(tx, scope, [sourceCustomerId])
  await deleteStates(tx, scope, [sourceCustomerId])
  await forgetAside(tx, scope, [sourceCustomerId])
  await upsertStates(tx, scope, [{ customerId: targetCustomerId, text: stateText(joined) }])
  await mark(tx, scope, [targetCustomerId], again ? 'recount' : 'merge')
}

function stateIn(stored: Map<string, StoredCustomer>, customerId: string) {
  const text = stored.get(customerId)?.text
  return text ? parseState(text) : emptyState()
}
