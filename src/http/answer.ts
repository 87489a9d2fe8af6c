import type { FastifyReply } from 'fastify'

/** What an operation answers, whichever way it goes out. */
export interface Answer {
  status: number
  /** Besides those that every answer has; lower-case names. */
  headers?: Readonly<Record<string, string>>
  /** JSON; absent: none. */
  body?: string | Pieces
}

/** A text, and bytes that many answers end with: they are not copied for each. */
export interface Pieces {
  text: string
  rest: Buffer
}

export const jsonType = 'application/json; charset=utf-8'

export function ok(body: string | Pieces, headers?: Answer['headers']): Answer {
  return headers === undefined ? { status: 200, body } : { status: 200, body, headers }
}

export function sendAnswer(reply: FastifyReply, { status, headers, body }: Answer): FastifyReply {
  reply.code(status)
  if (headers) reply.headers(headers)
  if (body !== undefined) reply.header('content-type', jsonType)
  return reply.send(typeof body === 'object' ? Buffer.concat([Buffer.from(body.text), body.rest]) : body)
}
