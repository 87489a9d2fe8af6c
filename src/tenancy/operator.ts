import { userInfo } from 'node:os'
import type { Sql, Tx } from '../db/pool.ts'
import { commandRowsMax } from '../kernel/limits.ts'
import { StartError } from '../kernel/start-error.ts'
import { type AuditEntry, insertAudit } from './change-store.ts'
import { selectProjectIds, selectProjectScope } from './operator-store.ts'
import type { Environment, Scope } from './types.ts'

/** What every command of the operator works with: whose data it is about, and the trace that it leaves. */

/** The project of that id, or the only one of the instance. Throws StartError. */
export async function findProjectScope(
  sql: Sql,
  { projectId, environment }: { projectId: string | undefined; environment: Environment },
): Promise<Scope> {
  const [only, ...more] = projectId === undefined ? await selectProjectIds(sql, commandRowsMax) : [projectId]
  if (only === undefined) throw new StartError('there is no project yet')
  if (more.length > 0) throw new StartError(`--project is needed, there are several: ${[only, ...more].join(', ')}`)
  const found = await selectProjectScope(sql, only, environment)
  if (!found) throw new StartError(`there is no project ${only}`)
  return { ...found, projectId: only, environment }
}

/** Writes a row of the audit log: the operator is known by the account on the machine. */
export async function note(
  tx: Tx,
  workspaceId: string,
  change: Pick<AuditEntry, 'action' | 'object' | 'objectId'> &
    Partial<Pick<AuditEntry, 'beforeDigest' | 'afterDigest'>>,
): Promise<void> {
  await insertAudit(tx, {
    workspaceId,
    actor: { type: 'operator', id: userInfo().username },
    beforeDigest: null,
    afterDigest: null,
    ...change,
    requestId: 'command line',
  })
}
