import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface Heard {
  headers: IncomingMessage['headers']
  body: string
}

export interface Receiver extends AsyncDisposable {
  heard: Heard[]
  url: string
}

/** A backend that answers what it hears in turn as told, with the last answer for ever. */
export async function receiver(...answers: ((answer: ServerResponse) => void)[]): Promise<Receiver> {
  const heard: Heard[] = []
  const server = createServer((request, answer) => {
    const parts: Buffer[] = []
    request.on('data', (part: Buffer) => parts.push(part))
    request.on('end', () => {
      heard.push({ headers: request.headers, body: Buffer.concat(parts).toString() })
      answers[Math.min(heard.length, answers.length) - 1]?.(answer)
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo // a TCP address after listen
  return {
    heard,
    url: `http://127.0.0.1:${port}/hook?x=1`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

export const says =
  (status: number, body = '{}') =>
  (answer: ServerResponse) => {
    answer.writeHead(status, { 'content-type': 'application/json' })
    answer.end(body)
  }
