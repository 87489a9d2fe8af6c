/**
 * Runs the tests: `node test/run.ts [files…]`. Starts one PostgreSQL for all of them and hands its address down; every test
 * file makes its own database on it. Without files, all `*.test.ts` of the repository; up to three files that fail among so many
 * neighbours are then run once more, by themselves, which decides. Both outcomes are told.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { removeFolder, startTestServer, temporaryFolder } from './harness/server.ts'

const root = join(import.meta.dirname, '..')
const everything = ['src/**/*.test.ts', 'test/**/*.test.ts', 'bench/**/*.test.ts', 'chaos/**/*.test.ts']

const named = process.argv.slice(2)
const files = globSync(named.length > 0 ? named : everything, { cwd: root })
if (files.length === 0) {
  console.error(`no test files: ${(named.length > 0 ? named : everything).join(' ')}`)
  process.exit(1)
}

// Ctrl-C reaches the tests as well; here it only keeps us alive until they have ended and the server is gone.
let tests: ChildProcess | undefined
let interrupted = false
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.on(signal, () => {
    interrupted = true
    tests?.kill(signal)
  })
}

const secondChancesMax = 3

process.exitCode = await run()

async function run(): Promise<number> {
  const folder = await temporaryFolder()
  process.env.TEST_FOLDER = folder
  try {
    await using server = await startTestServer()
    const failures = join(folder, 'failures')
    // Tests wait a third of their time: on two cores three files at once take 8.5 minutes, two 10.2.
    const code = await runFiles(files.toSorted(), { url: server.url, failures, atOnce: 3 })
    const failed = code === 1 && named.length === 0 ? failedFiles(failures) : []
    if (failed.length === 0 || failed.length > secondChancesMax) return code
    console.error(`\nonce more, by themselves:\n${failed.join('\n')}\n`)
    return await runFiles(failed, { url: server.url, failures, atOnce: 1 })
  } finally {
    await removeFolder(folder)
  }
}

async function runFiles(
  these: readonly string[],
  { url, failures, atOnce }: { url: string; failures: string; atOnce: number },
): Promise<number> {
  if (interrupted) return 130
  const reporters = ['spec', 'stdout', join(root, 'test/harness/failed-files.ts'), failures]
  const options = reporters.map((value, i) => `--test-reporter${i % 2 === 0 ? '' : '-destination'}=${value}`)
  const bounds = [`--test-concurrency=${atOnce}`, '--test-timeout=180000']
  tests = spawn(process.execPath, ['--test', ...options, ...bounds, ...these], {
    cwd: root,
    // Every file is a process of its own, and compiling the service was half of what a small one took.
    env: { NODE_COMPILE_CACHE: join(root, 'node_modules/.cache/turnpike'), ...process.env, TEST_SERVER_URL: url },
    stdio: 'inherit',
  })
  const [code] = await once(tests, 'exit')
  return typeof code === 'number' && !interrupted ? code : 130
}

function failedFiles(failures: string): string[] {
  return [...new Set(readFileSync(failures, 'utf8').split('\n').filter(Boolean))]
}
