import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, test } from 'node:test'
import type { Pool } from '../../src/db/pool.ts'
import { eventually, openProject } from '../app/project.ts'
import { testDatabase } from '../harness/database.ts'
import { removeFolder, temporaryFolder } from '../harness/server.ts'
import { startService } from '../harness/service.ts'
import { call, runTurnpike } from '../harness/turnpike.ts'
import { turnpike } from './command.ts'

const folder = await temporaryFolder()
after(() => removeFolder(folder))
const masterKey = Buffer.alloc(32, 7).toString('base64')
const settingsOf = ({ url }: { url: string }) => ({ DATABASE_URL: url, MASTER_KEY: masterKey, DATA_DIR: folder })

test('a customer who was deleted after the backup is deleted again before the restored database serves anybody', async () => {
  await using service = await startService()
  const project = await openProject(service)
  const app = await project.app()
  const send = (url: string, distinct_id: string) =>
    call(url, '/event', { apiKey: app.key, event: 'saved', distinct_id, uuid: randomUUID() })
  for (const id of ['ada', 'bob']) assert.equal((await send(service.url, id)).status, 200)
  await eventually(async () => (await namesIn(service.pool)).length === 2, 20_000)
  const source = settingsOf({ url: service.databaseUrl })
  const [backup, list] = [join(folder, 'before.sql.gz'), join(folder, 'tombstones')]
  assert.equal((await turnpike(['backup', backup], source)).code, 0)

  const found = await service.workspace('GET', `/customers/by_distinct_id/ada?project_id=${project.id}`)
  await project.delete(`/customers/${found.body.id}`)
  assert.equal((await turnpike(['tombstones', 'export', list], source)).code, 0)
  assert.equal((await stat(list)).mode & 0o777, 0o600)
  assert.ok(!(await readFile(list, 'utf8')).includes('ada'), 'the list names nobody')
  assert.equal((await turnpike(['tombstones', 'export', '-'], source)).out, await readFile(list, 'utf8'))

  {
    await using target = await testDatabase()
    const restored = await turnpike(['restore', backup, '--tombstones', list], settingsOf(target))
    assert.deepEqual([restored.code, restored.err], [0, ''])
    assert.match(restored.out, /then deleted 1 customers again/)
    assert.deepEqual(await namesIn(target.pool), ['bob'])
    await using again = runTurnpike({
      dataDir: await temporaryFolder(),
      settings: { DATABASE_URL: target.url, MASTER_KEY: masterKey },
    })
    assert.equal((await send(await again.url, 'ada')).status, 410)
    assert.equal((await send(await again.url, 'bob')).status, 200)
  }

  // Restored by other means, or without the list.
  await using target = await testDatabase()
  const restored = await turnpike(['restore', backup], settingsOf(target))
  assert.match(restored.out, /there again: turnpike tombstones apply/)
  assert.deepEqual(await namesIn(target.pool), ['ada', 'bob'])
  const applied = await turnpike(['tombstones', 'apply', list], settingsOf(target))
  assert.deepEqual([applied.code, applied.out], [0, '1 tombstones added, 1 customers deleted again\n'])
  assert.deepEqual(await namesIn(target.pool), ['bob'])
  const repeated = await turnpike(['tombstones', 'apply', list], settingsOf(target))
  assert.equal(repeated.out, '0 tombstones added, 0 customers deleted again\n')
})

test('a list that is cut off, changed or none is refused before anything is restored', async () => {
  await using target = await testDatabase()
  const whole = `turnpike tombstones 1\nproj_a\tlive\t${'ab'.repeat(32)}\t2026-01-01T00:00:00.000000Z\nend 1\n`
  const lists: Record<string, string> = {
    none: 'hello\n',
    empty: '',
    cut: whole.slice(0, -6),
    fewer: whole.replace('end 1', 'end 2'),
    changed: whole.replace('\tlive\t', '\tlife\t'),
    more: `${whole}\n`,
  }
  for (const [name, content] of Object.entries(lists)) {
    const path = join(folder, name)
    await writeFile(path, content)
    for (const command of [
      ['restore', '/nowhere', '--tombstones', path],
      ['tombstones', 'apply', path],
    ]) {
      const said = await turnpike(command, settingsOf(target))
      assert.equal(said.code, 1, name)
      assert.match(said.err, /is no list of tombstones|damaged or was not written whole/, name)
    }
  }
  const missing = await turnpike(['tombstones', 'apply', join(folder, 'missing')], settingsOf(target))
  assert.match(missing.err, /cannot be read/)
})

async function namesIn(pool: Pool): Promise<string[]> {
  const rows = await pool.query<{ id: string }>('select distinct_id as id from customer_alias order by 1')
  return rows.map(({ id }) => id)
}
