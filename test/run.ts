/**
 * Runs the tests: `node test/run.ts [files…]`. Starts one PostgreSQL for all of them and hands its address down; every test
 * file makes its own database on it. Without files, all `*.test.ts` of the repository.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { globSync } from 'node:fs'
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

process.exitCode = await run()

async function run(): Promise<number> {
  const folder = await temporaryFolder()
  process.env.TEST_FOLDER = folder
  try {
    await using server = await startTestServer()
    if (interrupted) return 130
    const options = ['--test', '--test-reporter=spec', '--test-concurrency=3', '--test-timeout=180000']
    tests = spawn(process.execPath, [...options, ...files.toSorted()], {
      cwd: root,
      env: { ...process.env, TEST_SERVER_URL: server.url },
      stdio: 'inherit',
    })
    const [code] = await once(tests, 'exit')
    return typeof code === 'number' && !interrupted ? code : 130
  } finally {
    await removeFolder(folder)
  }
}
