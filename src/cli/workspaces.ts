import { commandRowsMax } from '../kernel/limits.ts'
import { StartError } from '../kernel/start-error.ts'
import { operatorWorkspaces, setAccess } from '../tenancy/index.ts'
import { change } from './change.ts'
import { type Input, oneOf } from './command.ts'
import { withDatabase } from './database.ts'
import { print, printRows } from './print.ts'

const states = ['active', 'api_disabled', 'payment_required'] as const

export async function listWorkspaces({ options }: Input): Promise<void> {
  await withDatabase('workspaces', async ({ pool }) => {
    const rows = (await operatorWorkspaces(pool, commandRowsMax)).map((workspace) => ({
      id: workspace.id,
      name: workspace.name,
      slug: workspace.slug,
      access: workspace.access,
      members: workspace.members,
      projects: workspace.projects,
      keys: workspace.keys,
      created: workspace.createdAt.toISOString(),
    }))
    printRows(rows, { json: options.json === true })
  })
}

export async function setWorkspaceAccess({ words: [workspaceId = '', state] }: Input): Promise<void> {
  const access = oneOf(state, 'the state', states)
  if (access === undefined) throw new StartError('say which workspace and which state')
  await change('workspaces', async (tx) => {
    const before = await setAccess(tx, workspaceId, access)
    return () =>
      print(before === access ? `${workspaceId} was ${access} before` : `${workspaceId}: ${before} → ${access}`)
  })
}
