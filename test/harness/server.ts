import { globSync, readFileSync } from 'node:fs'
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
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
  const dataDir = await temporaryFolder()
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

/** Open to the user that PostgreSQL runs as when the tests run as root. */
export async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(join(process.env.TEST_FOLDER ?? tmpdir(), 'turnpike-test-'))
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
