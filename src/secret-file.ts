import { mkdir, open, rename } from 'node:fs/promises'
import { dirname } from 'node:path'
import { randomText } from './kernel/ids.ts'
import { StartError } from './kernel/start-error.ts'

/** Whole or not at all, on disk when it resolves, readable by its owner only. Throws StartError. */
export async function writeSecretFile(path: string, text: string): Promise<void> {
  try {
    await writeWhole(path, text)
  } catch (cause) {
    throw new StartError(`${path} cannot be written: ${(cause as Error).message}`, { cause }) // of the file system
  }
}

async function writeWhole(path: string, text: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true })
  const draft = `${path}.new-${randomText(6)}`
  {
    await using file = await open(draft, 'wx', 0o600)
    await file.writeFile(text)
    await file.sync()
  }
  await rename(draft, path)
  // A rename is on disk when its folder is.
  await using folder = await open(dirname(path), 'r')
  await folder.sync()
}
