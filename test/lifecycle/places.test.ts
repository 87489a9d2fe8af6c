import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { chmod, cp, mkdir, readdir, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import test, { after } from 'node:test'
import { promisify } from 'node:util'
import { type Account, canEnter, chooseAccount, isRoot } from '../../src/db/embedded/account.ts'
import { must } from '../../src/kernel/assert.ts'
import { removeFolder, temporaryFolder } from '../harness/server.ts'
import { call, type RunOptions, readFirstRun, runTurnpike } from '../harness/turnpike.ts'

const root = join(import.meta.dirname, '../..')

const folder = await temporaryFolder()
after(() => removeFolder(folder))

test('two run side by side and know nothing of each other, in folders with spaces in their names', async () => {
  const [here, there] = [join(folder, 'one of two'), join(folder, 'the "other", ünlike')]
  await using one = runTurnpike({ dataDir: here })
  const keyOfTwo = await (async () => {
    await using two = runTurnpike({ dataDir: there })
    const [url, otherUrl] = await Promise.all([one.url, two.url])
    const [key, otherKey] = [await testKey(here), await testKey(there)]
    assert.deepEqual(await balance(url, key), [200, 100])
    assert.deepEqual(await balance(otherUrl, otherKey), [200, 100])
    await spend(url, key, 7)
    assert.deepEqual(await balance(otherUrl, otherKey), [200, 100])
    assert.deepEqual(await balance(url, otherKey), [401, undefined])
    return otherKey
  })()
  assert.deepEqual(await balance(await one.url, await testKey(here)), [200, 93])
  assert.notEqual(keyOfTwo, await testKey(here))
})

test('below a home that only its owner may enter it starts, stops and finds everything again', async () => {
  const home = join(folder, 'home of one')
  await mkdir(home, { mode: 0o700 })
  await startTwice({ dataDir: join(home, 'data') })
})

test('an ordinary user runs it below a home of their own', async () => {
  const account = await chooseAccount()
  const home = join(folder, 'home of another')
  await mkdir(home, { mode: 0o700 })
  const reachable = await canEnter(account, join(root, 'src'))
  const place = reachable ? {} : await copyClone(home)
  if (account) await giveTo(account, home)
  const dataDir = join(home, 'data')
  await startTwice({ dataDir, ...place, ...account })
  const uid = account?.uid ?? process.getuid?.()
  for (const name of await readdir(dataDir)) assert.equal((await stat(join(dataDir, name))).uid, uid, name)
  assert.ok(!isRoot() || uid !== 0)
})

async function startTwice(options: RunOptions): Promise<void> {
  let key: string
  {
    await using turnpike = runTurnpike(options)
    const url = await turnpike.url
    key = await testKey(options.dataDir)
    await spend(url, key, 7)
  }
  await using turnpike = runTurnpike(options)
  assert.deepEqual(await balance(await turnpike.url, key), [200, 93])
}

async function testKey(dataDir: string): Promise<string> {
  return must((await readFirstRun(dataDir)).apps?.[0], 'the demo has apps').keys.test
}

async function balance(url: string, apiKey: string): Promise<[status: number, balance: unknown]> {
  const { status, body } = await call(url, '/entitled', { apiKey, customerId: 'demo-user', featureId: 'exports' })
  return [status, body.balance]
}

async function spend(url: string, apiKey: string, quantity: number): Promise<void> {
  const command = { apiKey, customerId: 'demo-user', featureId: 'exports', operationId: 'one', quantity }
  assert.equal((await call(url, '/feature/consume', command)).body.accepted, true)
}

/** Where the user can't enter this clone: what running takes, without the tools of development. */
async function copyClone(home: string): Promise<{ clone: string; node: string }> {
  const clone = join(home, 'a clone')
  const tools = /^(\.|node$|node-|@?(biomejs|typescript|oxlint|knip|oxc|types|rolldown|esbuild))/
  const modules = (await readdir(join(root, 'node_modules'))).filter((name) => !tools.test(name))
  for (const path of ['package.json', 'src', ...modules.map((name) => `node_modules/${name}`)]) {
    await mkdir(dirname(join(clone, path)), { recursive: true })
    await cp(join(root, path), join(clone, path), { recursive: true, verbatimSymlinks: true })
  }
  const node = join(home, 'node')
  await cp(process.execPath, node)
  return { clone, node }
}

async function giveTo({ uid, gid }: Account, path: string): Promise<void> {
  await chmod(path, 0o700)
  await promisify(execFile)('chown', ['-R', `${uid}:${gid}`, path])
}
