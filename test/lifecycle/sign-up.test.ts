import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import test from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { testDatabase } from '../harness/database.ts'
import { temporaryFolder } from '../harness/server.ts'
import { type RunningTurnpike, readFirstRun, runTurnpike } from '../harness/turnpike.ts'
import { assertRefused, caller } from '../workspace/api.ts'

const waitMsMax = 20_000
/** The promise is a second; a busy machine gets another one. */
const promiseMsMax = 2000

/** The first line of the log's mails to the address that the pattern finds, decoded. */
async function inMail({ out }: RunningTurnpike, to: string, pattern: RegExp): Promise<string> {
  for (let waited = 0; waited < waitMsMax; waited += 20) {
    for (const line of out().split('\n')) {
      if (!line.includes(`"to":"${to}"`)) continue
      const found = pattern.exec(JSON.parse(line).mail.text)?.[1]
      if (found) return found
    }
    await sleep(20)
  }
  throw new Error(`no such mail to ${to}: ${out()}`)
}

async function until(holds: () => Promise<boolean>, msMax: number): Promise<void> {
  const since = performance.now()
  while (!(await holds())) {
    assert.ok(performance.now() - since < msMax, `not within ${msMax} ms`)
    await sleep(10)
  }
}

test('from sign-up to the first call, on two processes over one database', async (t) => {
  await using stack = new AsyncDisposableStack()
  const database = stack.use(await testDatabase())
  const [dataDir, otherDir] = [await temporaryFolder(), await temporaryFolder()]
  stack.defer(() => Promise.all([dataDir, otherDir].map((folder) => rm(folder, { recursive: true }))).then(() => {}))
  const settings = {
    DATABASE_URL: database.url,
    MASTER_KEY: randomBytes(32).toString('base64'),
    ROLE: 'api',
    DEMO: '1',
  }
  const one = stack.use(runTurnpike({ dataDir, settings }))
  const url = await one.url
  const two = stack.use(runTurnpike({ dataDir: otherDir, settings }))
  const elsewhere = await two.url
  const idleMiB = residentMiB(one.processId)

  // Sign up, read the mail in the log, verify.
  const person = { email: 'ada@example.com', password: 'correct horse battery staple' }
  const anyone = caller(url, null)
  assert.equal((await anyone('POST', '/users', { body: { ...person, name: 'Ada' } })).status, 201)
  assertRefused(await anyone('POST', '/tokens', { body: person }), 403, 'email_verification_required')
  const token = await Promise.any([one, two].map((process) => inMail(process, person.email, /"token":"([^"]+)"/)))
  assert.equal((await caller(elsewhere, null)('POST', '/email_verifications', { body: { token } })).status, 200)

  // Sign in, make a workspace and a key, use it on both.
  const session = (await anyone('POST', '/tokens', { body: person })).body
  const me = caller(url, session.token)
  const made = (await me('POST', '/workspaces', { body: { name: 'Kitchen' } })).body
  const { data } = (await caller(elsewhere, session.token)('GET', '/workspaces')).body
  assert.deepEqual(data, [made])
  const keys = `/workspaces/${made.id}/api-keys`
  const { id, key } = (await me('POST', keys, { body: { name: 'Backend' } })).body
  const [here, there] = [caller(url, key), caller(elsewhere, key)]
  assert.equal((await here('POST', '/projects', { body: { name: 'App' } })).status, 201)
  await until(async () => (await there('GET', '/projects')).status === 200, promiseMsMax)
  assert.deepEqual((await there('GET', '/projects')).body, (await here('GET', '/projects')).body)

  // Revoke it, sign out: refused everywhere.
  assert.equal((await me('DELETE', `${keys}/${id}`)).status, 200)
  assertRefused(await here('GET', '/projects'), 401, 'invalid_api_key')
  await until(async () => (await there('GET', '/projects')).status === 401, promiseMsMax)
  assert.equal((await me('DELETE', '/tokens/current')).status, 200)
  assertRefused(await caller(elsewhere, session.token)('GET', '/workspaces'), 401, 'invalid_credentials')

  // Attempts are counted over both.
  const wrong = { body: { ...person, password: 'a guess' } }
  const statuses: number[] = []
  for (let n = 0; n < 5; n++) {
    statuses.push((await anyone('POST', '/tokens', wrong)).status)
    statuses.push((await caller(elsewhere, null)('POST', '/tokens', wrong)).status)
  }
  assert.deepEqual(new Set(statuses.slice(0, 8)), new Set([401]))
  assert.deepEqual(statuses.slice(8), [429, 429])

  // The first run's owner is a person too.
  await database.pool.query('delete from attempt')
  const { owner, workspace_id } = await readFirstRun(dataDir)
  const signedIn = await anyone('POST', '/tokens', { body: { email: owner.email, password: owner.password } })
  const theirs = await caller(url, signedIn.body.token)('GET', '/workspaces')
  assert.equal(theirs.body.data[0].id, workspace_id)

  const said = one.out() + two.out()
  for (const secret of [key, session.token, person.password, 'a guess']) assert.ok(!said.includes(secret))
  t.diagnostic(`resident: ${idleMiB} MiB at rest, ${residentMiB(one.processId)} MiB with people`)
})

function residentMiB(processId: number): number {
  if (process.platform !== 'linux') return 0
  return Math.round(Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${processId}/status`, 'utf8'))?.[1]) / 1024)
}
