import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { removeFolder, temporaryFolder } from '../harness/server.ts'
import { call, readFirstRun, runTurnpike } from '../harness/turnpike.ts'

const dataDir = await temporaryFolder()
after(() => removeFolder(dataDir))

test('no key, token, password or property is ever in the log, whatever is asked and however it fails', async () => {
  {
    await using first = runTurnpike({ dataDir })
    await first.url
  }
  const { owner, secret_key, apps = [] } = await readFirstRun(dataDir)
  const key = apps[0]?.keys.test ?? ''
  await using turnpike = runTurnpike({ dataDir, settings: { LOG_LEVEL: 'trace' } })
  const url = await turnpike.url
  const signedIn = await call(url, '/v1/tokens', owner)
  const token = String(signedIn.body.token)
  assert.equal(signedIn.status, 201)
  const wrongPassword = 'not-the-password-1'
  await call(url, '/v1/tokens', { ...owner, password: wrongPassword })
  const session = { authorization: `Bearer ${token}` }
  await call(url, '/v1/workspaces', undefined, session)
  const wrongKey = `sk_${'w'.repeat(40)}`
  for (const authorization of [`Bearer ${secret_key}`, `Bearer ${wrongKey}`, `Bearer ${key}`]) {
    await call(url, '/v1/projects', { name: 'Kitchen', secret: 'unknown-field-value' }, { authorization })
    await call(url, '/v1/features?limit=none', undefined, { authorization })
  }
  const event = { event: 'saved', distinct_id: 'ada', uuid: randomUUID(), properties: { note: 'private-property' } }
  await call(url, '/event', { apiKey: key, ...event })
  await call(url, '/event', { apiKey: `${key}x`, ...event })
  await call(url, '/event', { apiKey: key, ...event, uuid: 'broken-private-uuid' })
  await call(url, `/status?apiKey=${key}`)
  await fetch(`${url}/event`, {
    method: 'POST',
    body: '{"apiKey":"pk_live_half',
    headers: { 'content-type': 'application/json' },
  })

  const masterKey = (await readFile(join(dataDir, 'master.key'), 'utf8')).trim()
  const log = turnpike.out() + turnpike.err()
  assert.match(log, /listening on/)
  const secrets = [owner.password, wrongPassword, secret_key, wrongKey, key, token, masterKey]
  for (const secret of [...secrets, 'unknown-field-value', 'private-property', 'broken-private-uuid', 'pk_live_half']) {
    assert.ok(secret.length > 8 && !log.includes(secret), `${secret} is in the log`)
  }
})
