import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, connect } from 'node:net'
import { test } from 'node:test'
import { pino } from 'pino'
import { createHealthServer } from '../../src/http/server.ts'

test('a body that does not arrive in time loses its connection, and holds up nobody', async () => {
  const server = createHealthServer({
    log: pino({ level: 'silent' }),
    health: { version: 'test', ready: async () => [] },
    metrics: { token: undefined, metrics: [] },
    receiveMsMax: 200,
  })
  server.post('/slow', (_request, reply) => reply.send({}))
  await server.listen({ host: '127.0.0.1', port: 0 })
  try {
    const { port } = server.server.address() as AddressInfo // a TCP address after listen
    const socket = connect(port, '127.0.0.1')
    const head = 'POST /slow HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 20\r\n\r\n'
    const startedAt = performance.now()
    socket.write(`${head}{`)
    // A byte now and then keeps nothing alive.
    const dripping = setInterval(() => socket.write(' '), 50)
    socket.on('error', () => {})
    const [answer] = await once(socket, 'data')
    clearInterval(dripping)
    assert.match(String(answer), /^HTTP\/1\.1 408 /)
    assert.ok(performance.now() - startedAt >= 200)
    await once(socket, 'close')
    assert.equal((await fetch(`http://127.0.0.1:${port}/health`)).status, 200)
  } finally {
    await server.close()
  }
})
