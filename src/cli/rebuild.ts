import { rebuildCustomers, wireCustomerId } from '../customers/index.ts'
import { readMasterKey } from '../master-key.ts'
import { findProjectScope, openInstance } from '../tenancy/index.ts'
import { type Input, oneOf, textOf } from './command.ts'
import { withDatabase } from './database.ts'
import { plain, print } from './print.ts'

/** `events rebuild`: one line per difference, then one that sums up. Exit code 1 when something is different at the end. */
export async function rebuild(input: Input): Promise<void> {
  await withDatabase('events rebuild', async ({ config, url, pool, signal }) => {
    const environment = oneOf(textOf(input, 'environment'), '--environment', ['test', 'live']) ?? 'live'
    const scope = await findProjectScope(pool, { projectId: textOf(input, 'project'), environment })
    const masterKey = await readMasterKey(config)
    const { tombstoneKey } = await pool.transaction((tx) => openInstance(tx, masterKey))
    const total = await rebuildCustomers(scope, {
      ...{ url, pool, tombstoneKey, signal },
      check: input.options.check === true,
      onFinding({ customerId, field, live, rebuilt, outcome }) {
        const whom = customerId === '' ? 'command' : wireCustomerId(customerId)
        print(plain(`${outcome}: ${whom} ${field} live=${live ?? 'none'} rebuilt=${rebuilt ?? 'none'}`))
      },
    })
    const counts = Object.entries(total).map(([name, count]) => `${name}=${count}`)
    print(`rebuild: ${total.different === 0 ? 'OK' : 'DIFFERENT'} ${counts.join(' ')}`)
    if (total.different > 0) process.exitCode = 1
  })
}
