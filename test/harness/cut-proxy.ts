import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

export interface CutProxy extends AsyncDisposable {
  /** The same database by way of the proxy. */
  url: string
  /** Statements that went through. */
  statements: number
  /** After each of them that was answered: whether a transaction was open. */
  open: boolean[]
  /**
   * Loses the connection of the n-th statement from now: `before` it reaches the database, or `after` the database has
   * answered, with the answer lost.
   */
  cut: (n: number, when: 'before' | 'after') => void
  /** Messages of the protocol that went through: a statement with parameters is several. */
  messages: number
  /** Loses the connection before the n-th message from now reaches the database, what came before it included. */
  cutMessage: (n: number) => void
  /** Resolves when that has happened. */
  done: Promise<void>
}

/** A real network between a client and its database that fails between any two statements. */
export async function cutProxy(url: string): Promise<CutProxy> {
  const target = new URL(url)
  const sockets = new Set<Socket>()
  const happened = Promise.withResolvers<void>()
  let planned: { n: number; when: 'before' | 'after' } | null = null
  let messagesLeft = Number.POSITIVE_INFINITY

  const server = createServer((client) => {
    const database = connectTo(target)
    let losing = false
    const lose = () => {
      client.destroy()
      database.destroy()
    }
    for (const socket of [client, database]) {
      sockets.add(socket)
      socket.on('error', lose)
      socket.on('close', () => {
        sockets.delete(socket)
        lose()
      })
    }
    const split = messages()
    client.on('data', (bytes) => {
      for (const message of split(bytes)) {
        if (message[0] !== 0) {
          proxy.messages++
          if (--messagesLeft === 0) {
            losing = true
            lose()
            happened.resolve()
            return
          }
        }
        if (isStatementEnd(message)) {
          proxy.statements++
          if (planned !== null && --planned.n === 0) {
            const { when } = planned
            planned = null
            losing = true
            if (when === 'before') {
              lose()
              happened.resolve()
              return
            }
          }
        }
        database.write(message)
        if (losing) return
      }
    })
    database.on('data', (bytes) => {
      // The first word of a connection answers no statement.
      if (isReady(bytes) && proxy.open.length < proxy.statements) proxy.open.push(bytes.at(-1) !== 0x49)
      if (!losing) client.write(bytes)
      else if (isReady(bytes)) {
        lose()
        happened.resolve()
      }
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo // a TCP address after listen

  const proxied = new URL(url)
  proxied.hostname = '127.0.0.1'
  proxied.port = String(port)
  proxied.search = ''
  const proxy: CutProxy = {
    url: proxied.href,
    statements: 0,
    open: [],
    messages: 0,
    cutMessage(n) {
      messagesLeft = n
    },
    cut(n, when) {
      planned = { n, when }
    },
    done: happened.promise,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      server.close()
      await once(server, 'close')
    },
  }
  return proxy
}

/** "Ready for query" ends every answer: type, length 5, status of the transaction: `I` for none. */
function isReady(bytes: Buffer): boolean {
  return bytes.at(-6) === 0x5a && bytes.readUInt32BE(Math.max(bytes.length - 5, 0)) === 5
}

function connectTo(url: URL): Socket {
  const folder = url.searchParams.get('host')
  const port = url.searchParams.get('port') ?? (url.port || '5432')
  return folder?.startsWith('/') ? connect(`${folder}/.s.PGSQL.${port}`) : connect(Number(port), url.hostname)
}

/** Cuts the client's bytes into messages; the first has no type. */
function messages(): (bytes: Buffer) => Buffer[] {
  let rest = Buffer.alloc(0)
  let started = false
  return (bytes) => {
    rest = Buffer.concat([rest, bytes])
    const whole: Buffer[] = []
    for (;;) {
      const typeBytes = started ? 1 : 0
      if (rest.length < typeBytes + 4) return whole
      const length = typeBytes + rest.readInt32BE(typeBytes)
      if (rest.length < length) return whole
      whole.push(rest.subarray(0, length))
      rest = rest.subarray(length)
      started = true
    }
  }
}

/** Sync or a simple query. The startup message begins with its length, which is never that large. */
function isStatementEnd(message: Buffer): boolean {
  return message[0] === 0x53 || message[0] === 0x51
}
