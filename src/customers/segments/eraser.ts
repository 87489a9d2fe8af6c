import type { Eraser } from '../types.ts'
import { forgetAside } from './aside-store.ts'
import { deleteChangesOf } from './eraser-store.ts'
import { setOf } from './set-store.ts'
import { deleteStates, selectHeader, writeMemberships } from './state-store.ts'

/** Removes what segments keep of deleted customers. Nobody is told that they left: they are nobody any more. */
export const segmentEraser: Eraser = {
  name: 'segments',
  async erase(tx, scope, { customerIds }) {
    const header = await selectHeader(tx, scope, { dueBy: null, limit: 0 })
    if (!header) return true
    const set = await setOf(tx, scope, header.revision)
    const gone = set.versions.flatMap(({ id: versionId }) =>
      customerIds.map((customerId) => ({ versionId, customerId, since: null, told: true })),
    )
    await writeMemberships(tx, scope, gone)
    await deleteStates(tx, scope, customerIds)
    await forgetAside(tx, scope, customerIds)
    return deleteChangesOf(tx, scope, customerIds)
  },
}
