import { globSync, readFileSync } from 'node:fs'
import { chmod, mkdtemp, rm, statfs } from 'node:fs/promises'
import { freemem, tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { isAlive } from '../../src/db/embedded/process.ts'
import { startEmbedded } from '../../src/db/embedded.ts'
import { migrate } from '../../src/db/migrate.ts'
import { Pool } from '../../src/db/pool.ts'

/** The migrated database that every test database is a copy of. */
export const templateDatabase = 'turnpike_template'

/** A PostgreSQL of its own in a temporary folder with the template in it; gone without a trace when disposed. */
export async function startTestServer(): Promise<{ url: string } & AsyncDisposable> {
  const dataDir = await folderIn(await fastPlace())
  const server = await startEmbedded({ dataDir, log: silent })
  const stop = async () => {
    await server[Symbol.asyncDispose]()
    await removeFolder(dataDir)
  }
  try {
    await makeTemplate(server.url)
    return { url: server.url, [Symbol.asyncDispose]: stop }
  } catch (error) {
    await stop()
    throw error
  }
}

/** A log for parts whose words a test does not look at. */
export const silent = { info() {}, warn() {}, error() {} }

/**
 * Where the server's files lie: in memory where there is plenty, since making and dropping a database for each test file took a
 * third of the tests' time on a disk.
 */
async function fastPlace(): Promise<string> {
  const memory = '/dev/shm'
  const room = await statfs(memory).catch(() => null)
  const fits = room !== null && room.bavail * room.bsize > memoryBytesMin && freemem() > memoryBytesMin
  return fits ? memory : temporaryPlace()
}

const memoryBytesMin = 8 * 1024 ** 3

const temporaryPlace = () => process.env.TEST_FOLDER ?? tmpdir()

/** On the disk. Open to the user that PostgreSQL runs as when the tests run as root. */
export function temporaryFolder(): Promise<string> {
  return folderIn(temporaryPlace())
}

async function folderIn(place: string): Promise<string> {
  const folder = await mkdtemp(join(place, 'turnpike-test-'))
  await chmod(folder, 0o755)
  return folder
}

/** With every database in it, those that lie elsewhere included, and with the servers that interrupted tests left running. */
export async function removeFolder(folder: string): Promise<void> {
  const notes = globSync('**/postgres.location', { cwd: folder })
  const elsewhere = notes.map((note) => readFileSync(join(folder, note), 'utf8').trim())
  for (const place of [folder, ...elsewhere]) {
    for (const left of globSync('**/postmaster.pid', { cwd: place })) {
      const processId = Number.parseInt(readFileSync(join(place, left), 'utf8'), 10)
      while (isAlive(processId)) {
        process.kill(processId, 'SIGQUIT')
        await sleep(20)
      }
    }
    await rm(place, { recursive: true, force: true, maxRetries: 10 })
  }
}

/** The address of another database on the same server. */
export function withDatabase(url: string, database: string): string {
  const changed = new URL(url)
  changed.pathname = `/${database}`
  return changed.href
}

async function makeTemplate(url: string): Promise<void> {
  await using server = new Pool(url, { name: 'test server', max: 1 })
  await server.query(`create database ${templateDatabase}`)
  await using template = new Pool(withDatabase(url, templateDatabase), { name: 'test template', max: 1 })
  await migrate(template)
}
