import { setTimeout as sleep } from 'node:timers/promises'
import type { Pool } from '../src/db/pool.ts'
import { createProject, createSecretKey, createWorkspace, touchTenancy } from '../src/tenancy/index.ts'
import { selectOwner } from './queries-store.ts'

/** Whose questions they are. Each workspace has five at a time and 240 a minute, so many askers need many workspaces. */
export interface Asker {
  url: string
  secretKey: string
  projectId: string
}

/** A workspace more, with a project. Its scope is that of the test environment. */
export async function openAsker(db: Pool, url: string, name: string): Promise<{ asker: Asker; scopeId: number }> {
  const userId = await selectOwner(db)
  return db.transaction(async (tx) => {
    const { id } = await createWorkspace(tx, userId, { name })
    const { secret } = await createSecretKey(tx, id, { userId, name, expiresInDays: null })
    const { project, scopes } = await createProject(tx, id, { name })
    await touchTenancy(tx)
    return { asker: { url, secretKey: secret, projectId: project.id }, scopeId: scopes.test.scopeId }
  })
}

export function ask({ url, secretKey, projectId }: Asker, query: object): Promise<Response> {
  return fetch(`${url}/event_queries`, {
    method: 'POST',
    headers: {
      ...{ authorization: `Bearer ${secretKey}`, 'x-service-env': 'test' },
      'content-type': 'application/json',
    },
    body: JSON.stringify({ project_id: projectId, ...query }),
  })
}

/** Asks until it is answered, as often as the service says to come again. */
export async function askAgain(asker: Asker, query: object): Promise<void> {
  for (;;) {
    const response = await ask(asker, query)
    const text = await response.text()
    if (response.status === 200) return
    if (response.status !== 429 && response.status !== 503) throw new Error(`answered ${response.status}: ${text}`)
    await sleep(Number(response.headers.get('retry-after')) * 1000)
  }
}
