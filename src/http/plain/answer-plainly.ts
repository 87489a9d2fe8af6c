import { STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyInstance } from 'fastify'
import type { Logger } from 'pino'
import { must } from '../../kernel/assert.ts'
import { systemClock } from '../../kernel/clock.ts'
import { bodyBytesMax, bodyReceiveMsMax } from '../../kernel/limits.ts'
import { type Answer, jsonType } from '../answer.ts'
import type { Apps } from '../app/authenticate.ts'
import type { NoteAnswer } from '../app/metrics.ts'
import type { Call, Operation } from '../app/operation.ts'
import { parseJsonObject } from '../body.ts'
import { answerOf, logRefusal, toRefusal } from '../errors.ts'
import { requestId } from '../request-id.ts'
import { PlainConnection, type Wire } from './connection.ts'
import { plainHeadReader } from './head.ts'

export interface PlainOptions {
  hot: Operation[]
  apps: Apps
  note: NoteAnswer
  log: Logger
  receiveMsMax?: number
}

interface Route {
  bodyLimit: number
  fits: (body: unknown) => boolean
  run: (call: Call<never>) => Promise<Answer>
}

/**
 * Answers plain requests for hot operations before the framework, and Node's parser, see them: reading and writing them costs
 * half as much. All others get their connection handed over as if nothing had been read, and so does what would be refused
 * before the operation is asked: there is one voice for that.
 */
export function answerPlainly(
  server: FastifyInstance,
  { hot, apps, note, log, receiveMsMax = bodyReceiveMsMax }: PlainOptions,
): void {
  const compile = must(server.validatorCompiler, 'the server validates')
  const routes = new Map(
    hot.map(({ path, bodyLimit = bodyBytesMax, schema, run }): [string, Route] => {
      const fits =
        schema.body === undefined ? () => true : compile({ schema: schema.body as never, method: 'POST', url: path })
      return [path, { bodyLimit, run, fits: (body) => fits(body) === true }]
    }),
  )
  const readHead = plainHeadReader(['if-none-match', 'x-request-id', ...apps.fieldNames])
  const http = server.server
  const toNode = must(http.listeners('connection')[0], 'the server takes connections')
  const connections = new Set<PlainConnection>()
  let isClosing = false

  function begin(bytes: Buffer): Promise<Wire> | 'more' | undefined {
    const head = readHead(bytes)
    const route = head && routes.get(head.path)
    if (!head || !route || head.bodyLength > route.bodyLimit) return undefined
    const whole = head.headLength + head.bodyLength
    if (bytes.length !== whole) return bytes.length < whole ? 'more' : undefined
    const { fields } = head
    try {
      const body = parseJsonObject(bytes.subarray(head.headLength))
      const app = apps.authenticate(body, (name) => fields.get(name))
      if (!route.fits(body)) return undefined
      apps.count(app)
      const call = {
        app,
        body: body as never,
        requestId: requestId(fields.get('x-request-id')),
        ifNoneMatch: fields.get('if-none-match'),
      }
      return answer(head.path, route, call)
    } catch {
      return undefined
    }
  }

  async function answer(path: string, { run }: Route, call: Call<never>): Promise<Wire> {
    const startedAt = performance.now()
    let made: Answer
    try {
      made = await run(call)
    } catch (error) {
      const refusal = toRefusal(error)
      logRefusal(log, refusal, { requestId: call.requestId, path })
      made = answerOf('app', refusal, call.requestId)
    }
    note(path, made.status, performance.now() - startedAt)
    return wireOf(made, call.requestId)
  }

  const rules = {
    begin,
    handOver(socket: Socket, bytes: Buffer) {
      socket.pause()
      socket.unshift(bytes)
      toNode.call(http, socket)
      socket.resume()
    },
    now: () => performance.now(),
    receiveMsMax,
    keepAliveMs: http.keepAliveTimeout,
    isClosing: () => isClosing,
  }

  http.removeAllListeners('connection')
  http.on('connection', (socket: Socket) => {
    const connection: PlainConnection = new PlainConnection(socket, rules, () => connections.delete(connection))
    connections.add(connection)
  })
  const watch = setInterval(
    () => {
      for (const connection of connections) connection.closeIfLate()
    },
    Math.min(receiveMsMax, 5000),
  )
  watch.unref()
  server.addHook('preClose', async () => {
    isClosing = true
    clearInterval(watch)
    for (const connection of connections) connection.closeIfIdle()
  })
}

function wireOf({ status, headers, body }: Answer, id: string): Wire {
  let head = `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nx-request-id: ${id}\r\n`
  for (const name in headers) head += `${name}: ${headers[name]}\r\n`
  if (body === undefined) return { head: `${head}Date: ${date()}\r\n`, text: '', ascii: true, rest: undefined }
  const { text, rest } = typeof body === 'string' ? { text: body, rest: undefined } : body
  const bytes = Buffer.byteLength(text)
  head += `content-type: ${jsonType}\r\ncontent-length: ${bytes + (rest?.length ?? 0)}\r\nDate: ${date()}\r\n`
  return { head, text, ascii: bytes === text.length, rest }
}

let second = 0
let dateText = ''

function date(): string {
  const now = Math.floor(systemClock.now() / 1000)
  if (now !== second) {
    second = now
    dateText = new Date(now * 1000).toUTCString()
  }
  return dateText
}
