import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { removeFolder, temporaryFolder } from '../harness/server.ts'
import { call, postgresOf, runTurnpike } from '../harness/turnpike.ts'
import { ledgerWorld } from './random-ledger.ts'
import { verify } from './verify-command.ts'

const folder = await temporaryFolder()
after(() => removeFolder(folder))

test('ends with 0 when all agree, and with 1 and a line per finding when not', async () => {
  await using world = await ledgerWorld()
  await world.run([
    { kind: 'grant', who: 0, feature: 'exports', allowance: 10, every: false, rolls: null, entity: null },
    { kind: 'spend', who: 0, feature: 'exports', units: 3, total: false, entity: null },
  ])
  const settings = { DATABASE_URL: world.url, MASTER_KEY: randomBytes(32).toString('base64') }
  assert.deepEqual(await verify(settings), {
    code: 0,
    out: 'ledger: OK accounts=1 grants=1 operations=1 entries=2 findings=0\n',
    err: '',
  })

  await world.pool.query('update ledger_grant set remaining = 8')
  const { code, out, err } = await verify(settings)
  assert.deepEqual([code, err], [1, ''])
  const [finding, second, last, ...rest] = out.split('\n')
  assert.match(
    finding ?? '',
    /^finding: remaining scope=\d+ account=\d+ grant=\d+ expected="7 \(sum of entries\)" found="8"$/,
  )
  assert.match(second ?? '', /last entry/)
  assert.equal(last, 'ledger: DIFFERENT accounts=1 grants=1 operations=1 entries=2 findings=2')
  assert.deepEqual(rest, [''])
})

test('reads the embedded database of a running Turnpike without disturbing it, and without one starts and stops it', async () => {
  const dataDir = join(folder, 'embedded')
  {
    await using turnpike = runTurnpike({ dataDir })
    const url = await turnpike.url
    const before = await postgresOf(dataDir)
    const beside = await verify({ DATA_DIR: dataDir })
    assert.deepEqual([beside.code, beside.err], [0, ''], beside.out)
    assert.match(beside.out, /^ledger: OK accounts=[1-9]/, 'the demo has accounts')
    assert.deepEqual(await postgresOf(dataDir), before)
    assert.equal((await call(url, '/ready')).status, 200)
  }
  const alone = await verify({ DATA_DIR: dataDir })
  assert.deepEqual([alone.code, alone.err], [0, ''], alone.out)
  assert.equal((await postgresOf(dataDir)).processId, 0)
})

test('makes no database where there is none, and says so in one line', async () => {
  const dataDir = join(folder, 'nothing')
  assert.deepEqual(await verify({ DATA_DIR: dataDir }), {
    code: 1,
    out: '',
    err: `turnpike: there is no database in DATA_DIR ${dataDir}\n`,
  })
  assert.ok(!(await readdir(folder)).includes('nothing'))
})
