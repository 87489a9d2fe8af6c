import { randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Config } from './config.ts'
import { StartError } from './kernel/start-error.ts'
import { writeSecretFile } from './secret-file.ts'

/**
 * The key under which secrets are stored: the setting, or a file in DATA_DIR that the first run on an embedded database
 * makes. Whoever loses it loses the stored secrets. Call it as the owner of that database: then nobody else makes one.
 */
export async function readMasterKey({ masterKey, dataDir }: Config): Promise<Buffer> {
  if (masterKey) return masterKey
  const path = join(dataDir, 'master.key')
  const text = (await readIfThere(path)) ?? (await makeKey(path))
  const key = Buffer.from(text.trim(), 'base64')
  if (key.length !== 32) throw new StartError(`${path} does not hold 32 bytes in base64`)
  return key
}

async function makeKey(path: string): Promise<string> {
  const text = `${randomBytes(32).toString('base64')}\n`
  await writeSecretFile(path, text)
  return text
}

async function readIfThere(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined // of the file system
    throw error
  }
}
