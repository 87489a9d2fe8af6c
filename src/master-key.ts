import { randomBytes } from 'node:crypto'
import { mkdir, open, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Config } from './config.ts'
import { StartError } from './kernel/start-error.ts'

/**
 * The key under which secrets are stored: the setting, or a file in DATA_DIR that the first run on an embedded database
 * makes. Whoever loses it loses the stored secrets.
 */
export async function readMasterKey({ masterKey, dataDir }: Config): Promise<Buffer> {
  if (masterKey) return masterKey
  const path = join(dataDir, 'master.key')
  await mkdir(dataDir, { recursive: true })
  try {
    await using file = await open(path, 'wx', 0o600)
    await file.writeFile(`${randomBytes(32).toString('base64')}\n`)
    await file.sync()
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  }
  const key = Buffer.from((await readFile(path, 'utf8')).trim(), 'base64')
  if (key.length !== 32) throw new StartError(`${path} does not hold 32 bytes in base64`)
  return key
}
