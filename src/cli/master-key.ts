import { rename, stat } from 'node:fs/promises'
import { resolve } from 'node:path'
import { StartError } from '../kernel/start-error.ts'
import { keyIn, makeKey, masterKeyPath, nextKeyPath, readMasterKey, settleRotation } from '../master-key.ts'
import { opensDatabase, resealInstance } from '../tenancy/index.ts'
import { type Input, textOf } from './command.ts'
import { withDatabase } from './database.ts'
import { print } from './print.ts'

/**
 * `master-key rotate`, beside the service or without it. The new key is on disk before anything is sealed under it, so that
 * whatever is killed when, one of two keys at hand opens the database; an embedded one finds out by itself at the next start.
 */
export async function rotateMasterKey(input: Input): Promise<void> {
  const to = textOf(input, 'to')
  await withDatabase('master key', async ({ config, pool }) => {
    if (config.masterKey && to === undefined) {
      throw new StartError('--to FILE is needed: where to write the new key that MASTER_KEY shall have from then on')
    }
    if (!config.masterKey && to !== undefined) {
      throw new StartError('--to is for MASTER_KEY; here the key stays in DATA_DIR')
    }
    await settleRotation(config, (key) => pool.transaction((tx) => opensDatabase(tx, key)))
    const from = await readMasterKey(config, { make: false })
    const path = to === undefined ? nextKeyPath(config.dataDir) : resolve(to)
    if (await stat(path).catch(() => undefined)) throw new StartError(`${path} is there already: name a new file`)

    await pool.transaction(async (tx) => resealInstance(tx, { from, to: keyIn(path, await makeKey(path)) }))
    if (to === undefined) await rename(path, masterKeyPath(config.dataDir))
    print(`the secrets are sealed under the new master key in ${to ?? masterKeyPath(config.dataDir)}`)
    if (to !== undefined) print('Give MASTER_KEY what that file holds, for every process, before its next start.')
    print('Older backups need the old key: keep it as long as you keep them.')
  })
}
