import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { existsSync, mkdirSync, readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { dirname, join } from 'node:path'
import { text } from 'node:stream/consumers'
import test, { after } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { removeFolder, temporaryFolder } from '../harness/server.ts'
import { call, postgresOf, type RunningTurnpike, readFirstRun, runTurnpike } from '../harness/turnpike.ts'

const folder = await temporaryFolder()
after(() => removeFolder(folder))
const dataDir = join(folder, 'data')

for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  test(`${signal} lets requests under way finish, and leaves nothing running`, async () => {
    await using turnpike = runTurnpike({ dataDir })
    const url = await turnpike.url
    const key = await testKey()
    // A connection that is kept alive, one that never said anything, and a request whose body is half here.
    await call(url, '/health')
    const silent = await connection(url)
    const slow = await connection(url)
    const uuid = randomUUID()
    const [head, rest] = slowly({ apiKey: key, event: 'slow', distinct_id: 'slow', uuid })
    slow.write(head)
    const asked = Array.from({ length: 40 }, (_, i) =>
      call(url, '/feature/consume', {
        apiKey: key,
        customerId: 'demo-user',
        featureId: 'exports',
        operationId: `${signal} ${i}`,
        quantity: 1,
      }),
    )
    const answered = Promise.allSettled(asked)
    await Promise.race(asked)

    const began = performance.now()
    turnpike.process.kill(signal)
    turnpike.process.kill(signal) // npm sends it on, after the terminal has
    await until(async () => !(await accepts(url)))
    slow.write(rest)
    assert.match(await text(slow), /^HTTP\/1\.1 200 OK.*"queued":true/s)
    await stopped(turnpike, began)
    silent.destroy()

    const answers = await answered
    await using again = runTurnpike({ dataDir })
    const newUrl = await again.url
    for (const [i, answer] of answers.entries()) {
      if (answer.status === 'rejected') continue // it came too late
      assert.equal(answer.value.status, 200)
      const retried = await call(newUrl, '/feature/consume', {
        apiKey: key,
        customerId: 'demo-user',
        featureId: 'exports',
        operationId: `${signal} ${i}`,
        quantity: 1,
      })
      assert.deepEqual(retried.body, { ...answer.value.body, idempotentReplay: true })
    }
    const { secret_key } = await readFirstRun(dataDir)
    const headers = { authorization: `Bearer ${secret_key}`, 'x-service-env': 'test' }
    await until(
      async () => (await call(newUrl, '/v1/customers/by_distinct_id/slow', undefined, headers)).status === 200,
    )
  })
}

test('npm start passes a signal on: the shell that npm runs it in does not stand between', async () => {
  const { scripts } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'))
  const PATH = `${dirname(process.execPath)}:${process.env.PATH}`
  await using turnpike = runTurnpike({ dataDir, command: ['sh', '-c', scripts.start], settings: { PATH } })
  await turnpike.url
  const began = performance.now()
  turnpike.process.kill('SIGTERM')
  await stopped(turnpike, began)
})

test('a log that cannot be written any more, as when its terminal was closed, keeps nothing from running and stopping', async () => {
  const deaf = join(folder, 'deaf')
  const PATH = `${dirname(process.execPath)}:${process.env.PATH}`
  const command = ['sh', '-c', 'exec node src/main.ts start > /dev/full']
  await using turnpike = runTurnpike({ dataDir: deaf, command, settings: { PATH } })
  while (!existsSync(join(deaf, 'first-run.json'))) await sleep(20)
  const { base_url } = await readFirstRun(deaf)
  await until(async () =>
    call(base_url, '/health').then(
      ({ status }) => status === 200,
      () => false,
    ),
  )
  const began = performance.now()
  turnpike.process.kill('SIGTERM')
  await stopped(turnpike, began, deaf)
})

test('a request that never ends does not keep it from stopping within ten seconds, the database included', async () => {
  await using turnpike = runTurnpike({ dataDir })
  const url = await turnpike.url
  const endless = await connection(url)
  endless.write(slowly({ apiKey: await testKey(), event: 'endless', distinct_id: 'endless', uuid: randomUUID() })[0])
  const began = performance.now()
  turnpike.process.kill('SIGTERM')
  await stopped(turnpike, began)
})

/** What it has just done when the signal comes. */
const steps = {
  'while the database is made': (where: string) => readdirSync(where).some((name) => name.startsWith('postgres.new-')),
  'while the database starts': (where: string) => existsSync(join(where, 'postgres/server.log')),
  'while the tables are made': (_: string, out: string) => out.includes('embedded PostgreSQL in'),
}

test('a stop asked for while it starts is a stop, and the next start goes on from there', async (t) => {
  const early = join(folder, 'early')
  mkdirSync(early)
  for (const [when, reached] of Object.entries(steps)) {
    await t.test(when, async () => {
      await using turnpike = runTurnpike({ dataDir: early })
      while (!reached(early, turnpike.out())) await sleep(1)
      const began = performance.now()
      turnpike.process.kill('SIGTERM')
      await stopped(turnpike, began, early)
    })
  }
  await using turnpike = runTurnpike({ dataDir: early })
  await call(await turnpike.url, '/health')
})

/** Ended as promised: in time, with code 0, without a word on stderr and with nothing left behind. */
async function stopped(turnpike: RunningTurnpike, began: number, where = dataDir): Promise<void> {
  assert.deepEqual(await turnpike.ended, { code: 0, signal: null }, turnpike.err())
  assert.ok(performance.now() - began < 10_000)
  assert.equal(turnpike.err(), '')
  assert.doesNotMatch(turnpike.out(), /not everything stopped/)
  assert.equal((await postgresOf(where)).processId, 0)
  assert.deepEqual(processesIn(where), [])
}

/** Every process of a PostgreSQL works in its data directory. */
function processesIn(folderOrBelow: string): string[] {
  const processes = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  return processes.filter((processId) => {
    try {
      return readlinkSync(`/proc/${processId}/cwd`).startsWith(folderOrBelow)
    } catch {
      return false // not ours to see, or gone
    }
  })
}

async function testKey(): Promise<string> {
  return (await readFirstRun(dataDir)).apps?.[0]?.keys.test ?? ''
}

async function connection(url: string): Promise<Socket> {
  const socket = connect(Number(new URL(url).port), '127.0.0.1')
  await once(socket, 'connect')
  return socket
}

/** A POST of an event in two halves. */
function slowly(body: object): [head: string, rest: string] {
  const json = JSON.stringify(body)
  const head = `POST /event HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: ${json.length}\r\n\r\n`
  return [head + json.slice(0, 20), json.slice(20)]
}

async function accepts(url: string): Promise<boolean> {
  const socket = connect(Number(new URL(url).port), '127.0.0.1')
  const accepted = await once(socket, 'connect').then(
    () => true,
    () => false,
  )
  socket.destroy()
  return accepted
}

async function until(condition: () => Promise<boolean>): Promise<void> {
  while (!(await condition())) await sleep(20)
}
