import { randomBytes } from 'node:crypto'
import { readFile, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Config } from './config.ts'
import { StartError } from './kernel/start-error.ts'
import { writeSecretFile } from './secret-file.ts'

/**
 * The key under which secrets are stored: the setting, or a file in DATA_DIR that the first run on an embedded database
 * makes. Whoever loses it loses the stored secrets. Call it as the owner of that database: then nobody else makes one.
 */
export async function readMasterKey(
  { masterKey, dataDir }: Pick<Config, 'masterKey' | 'dataDir'>,
  { make = true } = {},
): Promise<Buffer> {
  if (masterKey) return masterKey
  const path = masterKeyPath(dataDir)
  const found = await readIfThere(path)
  if (found === undefined && !make) throw new StartError(`${path} is gone: bring it back from where you keep it`)
  return keyIn(path, found ?? (await makeKey(path)))
}

export function masterKeyPath(dataDir: string): string {
  return join(dataDir, 'master.key')
}

/** Where a rotation keeps the new key until the database is sealed under it. */
export function nextKeyPath(dataDir: string): string {
  return join(dataDir, 'master.key.next')
}

/** Makes a new key and writes it down, for its owner only, before anything is sealed under it. */
export async function makeKey(path: string): Promise<string> {
  const text = `${randomBytes(32).toString('base64')}\n`
  await writeSecretFile(path, text)
  return text
}

/**
 * Ends a rotation that was killed: the key in `master.key.next` counts when it opens the database, and is forgotten when
 * it does not.
 */
export async function settleRotation(config: Config, opens: (key: Buffer) => Promise<boolean>): Promise<void> {
  const next = nextKeyPath(config.dataDir)
  const text = config.masterKey ? undefined : await readIfThere(next)
  if (text === undefined) return
  if (await opens(keyIn(next, text))) await rename(next, masterKeyPath(config.dataDir))
  else await rm(next)
}

export function keyIn(path: string, text: string): Buffer {
  const key = Buffer.from(text.trim(), 'base64')
  if (key.length !== 32) throw new StartError(`${path} does not hold 32 bytes in base64`)
  return key
}

async function readIfThere(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined // of the file system
    throw error
  }
}
