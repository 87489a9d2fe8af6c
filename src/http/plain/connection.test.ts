import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises'
import { PlainConnection, type Rules, type Wire } from './connection.ts'

const large = Buffer.alloc(16 * 1024 * 1024, 'x')

/** A protocol of one rule: a request ends with a full stop. Those that begin with "!" are not plain. */
interface World extends AsyncDisposable {
  connection: () => Promise<{ client: Socket; served: PlainConnection }>
  /** What was asked and waits for `answer`. */
  asked: { request: string; answer: (body: string | Buffer) => void }[]
  handedOver: string[]
  left: () => number
  /** Milliseconds that pass at once. */
  pass: (ms: number) => void
  close: () => void
}

async function open(): Promise<World> {
  const asked: World['asked'] = []
  const handedOver: string[] = []
  let [now, left, isClosing] = [0, 0, false]
  const rules: Rules = {
    begin(bytes) {
      const request = bytes.toString()
      if (request.startsWith('!')) return undefined
      if (!request.endsWith('.')) return 'more'
      const { promise, resolve } = Promise.withResolvers<Wire>()
      asked.push({
        request,
        answer: (body) => resolve({ head: 'HTTP/1.1 200 OK\r\n', ascii: true, ...piecesOf(body) }),
      })
      return promise
    },
    handOver(socket, bytes) {
      handedOver.push(bytes.toString())
      for (const name of ['data', 'end', 'error', 'close', 'drain'])
        assert.deepEqual(
          socket.listeners(name).filter((f) => f.name.startsWith('#')),
          [],
        )
      socket.end('handed over')
    },
    now: () => now,
    receiveMsMax: 30,
    keepAliveMs: 72_000,
    isClosing: () => isClosing,
  }
  const opened: PlainConnection[] = []
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    opened.push(new PlainConnection(socket, rules, () => left++))
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const clients: Socket[] = []
  return {
    async connection() {
      const client = connect((server.address() as AddressInfo).port, '127.0.0.1') // a TCP address after listen
      client.on('error', () => {})
      clients.push(client)
      const count = opened.length
      await once(client, 'connect')
      await until(() => opened.length > count)
      return { client, served: opened[count] ?? assert.fail() }
    },
    asked,
    handedOver,
    left: () => left,
    pass: (ms) => {
      now += ms
    },
    close: () => {
      isClosing = true
    },
    async [Symbol.asyncDispose]() {
      for (const client of clients) client.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}

test('requests are answered one after the other, come they in one piece or in two', async () => {
  await using world = await open()
  const { client } = await world.connection()
  for (const [n, pieces] of [['one.'], ['tw', 'o.'], ['three.']].entries()) {
    for (const piece of pieces) {
      client.write(piece)
      await sleep(5)
    }
    await until(() => world.asked.length > n)
    assert.equal(world.asked[n]?.request, pieces.join(''))
    world.asked[n]?.answer(n === 1 ? Buffer.from('body') : 'body')
    const [answer] = await once(client, 'data')
    assert.equal(String(answer), 'HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nKeep-Alive: timeout=72\r\n\r\nbody')
  }
})

test('what is not plain is handed over with every byte that was read: at once, after a piece, and after three', async () => {
  await using world = await open()
  const { client } = await world.connection()
  client.write('!x')
  assert.equal(await text(client), 'handed over')
  const { client: second } = await world.connection()
  for (const piece of ['a', 'b', 'c.']) {
    second.write(piece)
    await sleep(5)
  }
  assert.equal(await text(second), 'handed over')
  assert.deepEqual(world.handedOver, ['!x', 'ab'])
  assert.deepEqual([world.asked.length, world.left()], [0, 2])
})

test('what comes before the answer waits for it, and is handed over then', async () => {
  await using world = await open()
  const { client } = await world.connection()
  client.write('one.')
  await until(() => world.asked.length === 1)
  client.write('two.')
  await sleep(20)
  assert.deepEqual(world.handedOver, [])
  world.asked[0]?.answer('body')
  assert.match(await text(client), /\r\n\r\nbodyhanded over$/)
  assert.deepEqual([world.asked.length, world.handedOver], [1, ['two.']])
})

test('a caller who ends the connection gets the answer, and one who is gone harms nobody', async () => {
  await using world = await open()
  const { client } = await world.connection()
  client.end('one.')
  await until(() => world.asked.length === 1)
  await sleep(5)
  world.asked[0]?.answer('body')
  assert.match(await text(client), /Connection: close\r\n\r\nbody$/)
  const { client: second } = await world.connection()
  second.write('two.')
  await until(() => world.asked.length === 2)
  second.resetAndDestroy()
  await until(() => world.left() === 2)
  world.asked[1]?.answer('body')
  await nextTurn()
  const { client: idle } = await world.connection()
  idle.end()
  assert.equal(await text(idle), '')
})

test('a caller who does not read is given no second answer before the first', async () => {
  await using world = await open()
  const { client } = await answeredUnread(world)
  client.write('two.')
  await sleep(50)
  assert.deepEqual([world.asked.length, world.handedOver], [1, []])
  const received = await text(client)
  assert.ok(received.length > large.length && received.endsWith('xhanded over'))
})

test('a caller who does not read and has ended gets the answer, whatever was sent too early', async () => {
  await using world = await open()
  const { client } = await answeredUnread(world)
  client.end('two.')
  await sleep(50)
  const received = await text(client)
  assert.ok(received.length > large.length && received.endsWith('x'))
  assert.deepEqual([world.asked.length, world.handedOver], [1, []])
})

test('while the server closes, an answer that is being read is read to its end', async () => {
  await using world = await open()
  const { client, served } = await answeredUnread(world)
  await sleep(20)
  world.close()
  served.closeIfIdle()
  const received = await text(client)
  assert.ok(received.length > large.length && received.endsWith('x'))
})

test('a request that does not come whole in time is refused, a connection that nobody uses is closed', async () => {
  await using world = await open()
  const { client: silent, served: first } = await world.connection()
  const { client: slow, served: second } = await world.connection()
  const { client: idle, served: third } = await world.connection()
  slow.write('on')
  idle.write('one.')
  await until(() => world.asked.length === 1)
  await sleep(5)
  world.pass(30)
  for (const served of [first, second, third]) served.closeIfLate()
  world.asked[0]?.answer('body')
  await once(idle, 'data')
  world.pass(1)
  for (const served of [first, second, third]) served.closeIfLate()
  assert.match(await text(silent), /^HTTP\/1\.1 408 /)
  assert.match(await text(slow), /^HTTP\/1\.1 408 /)
  world.pass(72_000)
  third.closeIfLate()
  assert.equal(await text(idle), '')
  assert.equal(world.left(), 3)
})

test('a request that breaks off is refused as malformed', async () => {
  await using world = await open()
  const { client } = await world.connection()
  client.end('on')
  assert.match(await text(client), /^HTTP\/1\.1 400 /)
})

test('while the server closes, idle connections end and the others get their answer first', async () => {
  await using world = await open()
  const { client: idle, served: first } = await world.connection()
  const { client: busy, served: second } = await world.connection()
  idle.write('one.')
  await until(() => world.asked.length === 1)
  world.asked[0]?.answer('body')
  await once(idle, 'data')
  busy.write('two.')
  await until(() => world.asked.length === 2)
  world.close()
  for (const served of [first, second]) served.closeIfIdle()
  assert.equal(await text(idle), '')
  world.asked[1]?.answer('body')
  assert.match(await text(busy), /Connection: close\r\n\r\nbody$/)
})

/** A large answer is on its way to somebody who does not read. */
async function answeredUnread(world: World) {
  const opened = await world.connection()
  opened.client.pause()
  opened.client.write('one.')
  await until(() => world.asked.length === 1)
  world.asked[0]?.answer(large)
  return opened
}

function piecesOf(body: string | Buffer): Pick<Wire, 'text' | 'rest'> {
  return typeof body === 'string' ? { text: body, rest: undefined } : { text: '', rest: body }
}

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await sleep(1)
}
