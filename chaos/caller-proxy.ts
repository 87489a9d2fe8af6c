import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/** A network between callers and the service that can be told to fail. */
export interface CallerProxy extends AsyncDisposable {
  url: string
  /** Where new connections go from now on. */
  leadTo(url: string): void
  /** Breaks all connections. */
  cut(): void
  /** Loses the replies that come on the next `count` connections, and these connections with them. */
  swallow(count: number): void
  /** Holds every reply back for that long; 0 no more. */
  delay(ms: number): void
}

export async function callerProxy(): Promise<CallerProxy> {
  const sockets = new Set<Socket>()
  let port = 0
  let toSwallow = 0
  let delayMs = 0

  const server = createServer((caller) => {
    const service = connect({ host: '127.0.0.1', port })
    const lose = () => {
      caller.destroy()
      service.destroy()
    }
    for (const socket of [caller, service]) {
      sockets.add(socket)
      socket.on('error', lose)
      socket.on('close', () => {
        sockets.delete(socket)
        lose()
      })
    }
    caller.pipe(service)
    service.on('data', (bytes) => {
      if (toSwallow > 0) {
        toSwallow--
        lose()
      } else if (delayMs > 0) {
        // Parts of one reply keep their order: what is behind it waits as well.
        service.pause()
        setTimeout(() => {
          caller.write(bytes)
          service.resume()
        }, delayMs)
      } else caller.write(bytes)
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, // a TCP address after listen
    leadTo(url) {
      port = Number(new URL(url).port)
    },
    cut() {
      for (const socket of sockets) socket.destroy()
    },
    swallow(count) {
      toSwallow = count
    },
    delay(ms) {
      delayMs = ms
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
}
