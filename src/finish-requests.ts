import type { Socket } from 'node:net'
import type { FastifyInstance } from 'fastify'
import { requestsFinishMsMax } from './kernel/limits.ts'

const sweepMs = 20
/** What was sent before the stop has been read by then. */
const silentMsMax = 250

/**
 * Makes what stops the server: it accepts no more, waits for the answers under way and closes each connection as it falls
 * idle. `close` alone leaves connections open that were busy when it was called, and those that never said a word.
 */
export function finishRequestsOf(server: FastifyInstance): () => Promise<void> {
  const sockets = new Set<Socket>()
  server.server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  return async () => {
    const closed = server.close()
    const silent = setTimeout(() => {
      for (const socket of sockets) if (socket.bytesRead === 0) socket.destroy()
    }, silentMsMax)
    const sweep = setInterval(() => server.server.closeIdleConnections(), sweepMs)
    const late = setTimeout(() => {
      for (const socket of sockets) socket.destroy()
    }, requestsFinishMsMax)
    await closed
    clearInterval(sweep)
    clearTimeout(silent)
    clearTimeout(late)
  }
}
