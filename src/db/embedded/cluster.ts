import { spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  access,
  chown,
  constants,
  link,
  mkdir,
  open,
  readdir,
  readFile,
  rename,
  rm,
  stat,
  writeFile,
} from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { text } from 'node:stream/consumers'
import { randomText } from '../../kernel/ids.ts'
import { StartError } from '../../kernel/start-error.ts'
import { type Account, canEnter, chooseAccount, isRoot, ownerOf } from './account.ts'
import { type Binaries, provideBinaries } from './binaries.ts'
import { isAlive } from './process.ts'

/** A database directory and what it takes to run it. */
export interface Cluster {
  /** Owned by the account, mode 0700: `data`, `socket` and `server.log` lie in it. */
  home: string
  data: string
  /** Absent: PostgreSQL runs as we do. */
  account: Account | undefined
  binaries: Binaries
}

/** Where root puts what an unprivileged user must reach when `DATA_DIR` or the clone lies where only root may enter. */
const shelf = '/var/lib/turnpike'

/** The cluster of `dataDir`, made when there is none. Throws StartError when it can't be used. */
export async function openCluster(dataDir: string): Promise<Cluster> {
  await openFolder(dataDir)
  const home = await findHome(dataDir)
  const cluster = home === undefined ? await createCluster(dataDir) : await existingCluster(home)
  await checkMajor(cluster, dataDir)
  return cluster
}

async function openFolder(dataDir: string): Promise<void> {
  try {
    await mkdir(dataDir, { recursive: true })
    await access(dataDir, constants.W_OK | constants.X_OK)
  } catch (cause) {
    throw new StartError(`DATA_DIR ${dataDir} cannot be used: ${(cause as Error).message}`, { cause }) // of the file system
  }
}

/** `DATA_DIR/postgres`, or the place that `DATA_DIR/postgres.location` names. */
async function findHome(dataDir: string): Promise<string | undefined> {
  const home = join(dataDir, 'postgres')
  if (await exists(home)) return home
  const location = join(dataDir, 'postgres.location')
  if (!(await exists(location))) return undefined
  const elsewhere = (await readFile(location, 'utf8')).trim()
  if (await exists(elsewhere)) return elsewhere
  // Beginning anew would look like a loss of everything; that is for the operator to say.
  throw new StartError(
    `the database of DATA_DIR ${dataDir} lay in ${elsewhere}, which is gone: bring it back, or remove ${location}`,
  )
}

async function existingCluster(home: string): Promise<Cluster> {
  const account = await ownerOf(home)
  if (!(await canEnter(account, home))) {
    throw new StartError(`user ${account?.uid}, who owns the database in ${home}, can't enter that folder`)
  }
  return { home, data: join(home, 'data'), account, binaries: await provideBinaries(account, shelf) }
}

async function createCluster(dataDir: string): Promise<Cluster> {
  const account = await chooseAccount()
  const binaries = await provideBinaries(account, shelf)
  const inside = await canEnter(account, dataDir)
  const home = inside ? join(dataDir, 'postgres') : join(shelf, randomText(16))
  await removeLeftovers(home)

  // Made aside and renamed when whole: a start killed half-way leaves nothing that looks like a database.
  const aside = `${home}.new-${process.pid}-${randomText(6)}`
  await mkdir(dirname(aside), { recursive: true, mode: 0o755 })
  await mkdir(aside, { mode: 0o700 })
  if (account) await chown(aside, account.uid, account.gid)
  await initialise(aside, account, binaries)
  const taken = inside ? await moveTo(aside, home) : await moveElsewhere({ aside, home, dataDir })
  return { home: taken, data: join(taken, 'data'), account, binaries }
}

/** Folders that killed starts left beside `home`, known by the process id in their name. */
async function removeLeftovers(home: string): Promise<void> {
  const folder = dirname(home)
  const pattern = isRoot() && folder === shelf ? /^[a-z0-9]{16}\.new-(\d+)-/ : /^postgres\.new-(\d+)-/
  const names = (await exists(folder)) ? await readdir(folder) : []
  for (const name of names) {
    const pid = Number(pattern.exec(name)?.[1])
    if (pid > 0 && !isAlive(pid)) await rm(join(folder, name), { recursive: true, force: true, maxRetries: 5 })
  }
}

async function initialise(home: string, account: Account | undefined, binaries: Binaries): Promise<void> {
  const options = [
    ['--pgdata', join(home, 'data')],
    ['--username', 'turnpike'],
    // Everybody who can reach the socket: its folder admits the account (and root) only.
    ['--auth', 'trust'],
    ['--encoding', 'UTF8', '--locale', 'C', '--locale-provider', 'builtin', '--builtin-locale', 'C.UTF-8'],
  ]
  const initdb = spawn(join(binaries.directory, 'bin/initdb'), options.flat(), {
    ...account,
    cwd: home,
    env: { LC_ALL: 'C', TZ: 'UTC' },
    // In a session of its own, as PostgreSQL later: Ctrl-C is for us to answer.
    detached: true,
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  const ended = once(initdb, 'close')
  const [said, [code]] = await Promise.all([text(initdb.stderr), ended])
  if (code === 0) return
  await rm(home, { recursive: true, force: true })
  throw new StartError(`the database could not be made: ${said.trim().split('\n').at(-1)}`)
}

/** Gives the home that counts: another start may have been faster, then its is used and ours is removed. */
async function moveTo(aside: string, home: string): Promise<string> {
  try {
    await rename(aside, home)
  } catch (error) {
    await rm(aside, { recursive: true })
    if (!(await exists(home))) throw error
  }
  await makeDurable(dirname(home))
  return home
}

/** The same where the database lies outside `dataDir`: what decides is whose note gets its name first. */
async function moveElsewhere({
  aside,
  home,
  dataDir,
}: {
  aside: string
  home: string
  dataDir: string
}): Promise<string> {
  await moveTo(aside, home)
  const note = join(dataDir, `postgres.location.new-${randomText(6)}`)
  const location = join(dataDir, 'postgres.location')
  await writeFile(note, `${home}\n`, { flush: true })
  try {
    await link(note, location)
    return home
  } catch (error) {
    if (!(await exists(location))) throw error
    await rm(home, { recursive: true })
    return (await readFile(location, 'utf8')).trim()
  } finally {
    await rm(note)
    await makeDurable(dataDir)
  }
}

/** A rename is on disk when its folder is; before that no unit may be acknowledged from it. */
async function makeDurable(folder: string): Promise<void> {
  for (const path of [folder, dirname(folder)]) {
    await using handle = await open(path, 'r')
    await handle.sync()
  }
}

async function checkMajor({ data, binaries }: Cluster, dataDir: string): Promise<void> {
  const found = (await readFile(join(data, 'PG_VERSION'), 'utf8')).trim()
  if (Number(found) === binaries.major) return
  throw new StartError(
    `DATA_DIR ${dataDir} holds a PostgreSQL ${found} database and this version brings PostgreSQL ${binaries.major}: ` +
      'dump it with the version that made it and load it into a new one',
  )
}

async function exists(path: string): Promise<boolean> {
  return (await stat(path).catch(() => undefined)) !== undefined
}
