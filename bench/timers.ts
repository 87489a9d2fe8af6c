/**
 * `npm run bench:timers`: parks journeys in a delay, lets a part of them fall due, and measures how fast workers take them on.
 * `--parked 1000000 --due 500000 --workers 2`. The aim is 10,000 transitions a second with two workers.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { openCluster } from '../src/db/embedded/cluster.ts'
import { startEmbedded } from '../src/db/embedded.ts'
import { migrate } from '../src/db/migrate.ts'
import { Pool } from '../src/db/pool.ts'
import { checkTimers, countTransitions, fillJourneys } from './timers-store.ts'

const { values } = parseArgs({
  options: {
    parked: { type: 'string', default: '1000000' },
    due: { type: 'string', default: '500000' },
    workers: { type: 'string', default: '2' },
  },
})
const [parked, due, workers] = [Number(values.parked), Number(values.due), Number(values.workers)]
const aim = 10_000

/** On the disk of the clone: a temporary folder may lie in memory, where fsync costs nothing. */
const results = fileURLToPath(new URL('./results', import.meta.url))
await mkdir(results, { recursive: true })
const dataDir = await mkdtemp(join(results, 'data-'))
const silent = { info() {}, warn() {}, error() {} }
try {
  await using server = await startEmbedded({ dataDir, log: silent })
  await using pool = new Pool(server.url, { name: 'bench', max: 2, settings: { statement_timeout: '0' } })
  await migrate(pool)
  console.log(`parking ${parked} journeys, ${due} of them due`)
  const filled = await fillJourneys(pool, { parked, due })
  const startedAt = performance.now()
  await Promise.all(Array.from({ length: workers }, () => work(server.url, filled.now)))
  const seconds = (performance.now() - startedAt) / 1000
  const done = await countTransitions(pool, filled.scopeId)
  const perS = Math.round(done / seconds)
  const wrong = await checkTimers(pool, filled, due)
  console.log(`${done} transitions by ${workers} workers in ${seconds.toFixed(1)} s: ${perS}/s, aim ${aim}/s`)
  console.log(wrong.length === 0 ? 'none twice, every rev as expected' : wrong.join('\n'))
  if (wrong.length > 0) process.exitCode = 1
} finally {
  const { home } = await openCluster(dataDir)
  await rm(home, { recursive: true, force: true })
  await rm(dataDir, { recursive: true, force: true })
}

/** A process of its own, as in production. */
async function work(url: string, now: number): Promise<void> {
  const file = fileURLToPath(new URL('./timers-worker.ts', import.meta.url))
  const child = spawn(process.execPath, [file, url, String(now)], { stdio: ['ignore', 'inherit', 'inherit'] })
  const [code] = await once(child, 'exit')
  if (code !== 0) throw new Error('a worker failed')
}
