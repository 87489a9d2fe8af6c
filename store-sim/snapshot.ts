import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { World } from './world.ts'

const saveAfterMs = 500

export interface Snapshot {
  load: () => World | undefined
  /** Soon: many changes are one write. */
  save: (world: World) => void
  close: () => void
}

/** The world as JSON in `DATA_DIR/store-sim`. It holds keys of the simulator, which open nothing but simulators. */
export function openSnapshot(dataDir: string | undefined): Snapshot {
  if (dataDir === undefined) return { load: () => undefined, save: () => {}, close: () => {} }
  const folder = join(dataDir, 'store-sim')
  const file = join(folder, 'snapshot.json')
  let waiting: World | undefined
  let timer: NodeJS.Timeout | undefined
  const write = () => {
    clearTimeout(timer)
    timer = undefined
    if (waiting === undefined) return
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    writeFileSync(`${file}.new`, JSON.stringify(waiting), { mode: 0o600 })
    renameSync(`${file}.new`, file)
    waiting = undefined
  }
  return {
    load: () => {
      try {
        return JSON.parse(readFileSync(file, 'utf8')) as World // written below
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
        throw new Error(`${file} cannot be read; remove it to begin afresh`, { cause: error })
      }
    },
    save: (world) => {
      waiting = world
      timer ??= setTimeout(write, saveAfterMs).unref()
    },
    close: write,
  }
}
