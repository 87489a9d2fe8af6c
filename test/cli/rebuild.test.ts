import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { anEvent, eventually, openProject } from '../app/project.ts'
import { removeFolder, temporaryFolder } from '../harness/server.ts'
import { startService } from '../harness/service.ts'
import { turnpike } from './command.ts'

const folder = await temporaryFolder()
after(() => removeFolder(folder))

test('events rebuild finds, with --check, and mends what somebody did to a customer by hand, beside the running service', async () => {
  await using service = await startService()
  const project = await openProject(service)
  const app = await project.app()
  const send = (more: object) => app.post('/event', anEvent('ada', more))
  const propertiesOf = async () => {
    const path = `/customers/by_distinct_id/ada?project_id=${project.id}`
    const { status, body } = await service.workspace('GET', path)
    return status === 200 ? body.properties : undefined
  }
  await project.customer('ada')
  await project.customer('silent')
  await send({ properties: { $set: { plan: 'pro' }, $increment: { n: 1 } } })
  await eventually(async () => (await propertiesOf())?.n === 1, 20_000)
  const scopeId = await project.scopeId()
  await service.pool.query(
    `update customer set properties = '{"plan": "free"}' where scope_id = $1 and properties <> '{}'`,
    [scopeId],
  )

  const masterKey = Buffer.alloc(32, 7).toString('base64')
  const settings = { DATABASE_URL: service.databaseUrl, MASTER_KEY: masterKey, DATA_DIR: folder }
  const rebuild = (...more: string[]) =>
    turnpike(['events', 'rebuild', '--project', project.id, '--environment', 'test', ...more], settings)
  const checked = await rebuild('--check')
  assert.deepEqual([checked.code, checked.err], [1, ''])
  assert.match(checked.out, /^left: cus_\S+ properties\.plan live="free" rebuilt="pro"$/m)
  assert.match(checked.out, /\nrebuild: DIFFERENT customers=\d+ mended=0 different=1 kept=1 incomplete=0\n$/)
  assert.deepEqual(await propertiesOf(), { plan: 'free' })

  const mended = await rebuild()
  assert.equal(mended.code, 0)
  assert.match(mended.out, /\nrebuild: OK customers=\d+ mended=1 different=0 kept=1 incomplete=0\n$/)
  assert.deepEqual(await propertiesOf(), { plan: 'pro', n: 1 })
  await send({ properties: { $increment: { n: 1 } } })
  await eventually(async () => (await propertiesOf())?.n === 2, 20_000)

  const wrong = await turnpike(['events', 'rebuild', '--environment', 'none'], settings)
  assert.deepEqual([wrong.code, wrong.out], [1, ''])
})
