import { stat } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { StartError } from '../kernel/start-error.ts'
import { openCluster } from './embedded/cluster.ts'
import { socketUrl } from './embedded/owner.ts'
import { findPostmaster } from './embedded/postmaster.ts'
import { type EmbeddedOptions, startEmbedded } from './embedded.ts'

/**
 * The PostgreSQL of `dataDir` for a command beside the service. One that runs is used and left to whoever owns it; else it
 * is started, and stopped when disposed. Makes no database. Throws StartError, also while the database starts or stops:
 * taking it over now could be in the way of its Turnpike.
 */
export async function visitEmbedded(options: EmbeddedOptions): Promise<{ url: string } & AsyncDisposable> {
  const folder = resolve(options.dataDir)
  const isThere = await Promise.all(['postgres', 'postgres.location'].map((name) => exists(join(folder, name))))
  if (!isThere.includes(true)) throw new StartError(`there is no database in DATA_DIR ${folder}`)
  const { data, home } = await openCluster(folder)
  const running = findPostmaster(data)
  if (!running?.runs) return startEmbedded(options)
  if (!running.ready) throw new StartError(`the database in ${home} is starting or stopping: try again`)
  return { url: socketUrl(running.socketDirectory, 'turnpike'), async [Symbol.asyncDispose]() {} }
}

async function exists(path: string): Promise<boolean> {
  return (await stat(path).catch(() => undefined)) !== undefined
}
