import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** With the answer that the connection is giving, as Node's own handling of malformed bytes looks it up. */
type HttpSocket = Socket & { _httpMessage?: ServerResponse | null }

const refused = new WeakSet<Socket>()

/**
 * Bytes that are no HTTP request: one answer in our words, then the connection ends. Whole requests that came before get
 * their own answers first, or their callers would take this one for theirs.
 */
export function refuseMalformed(error: NodeJS.ErrnoException, socket: Socket): void {
  if (error.code === 'ECONNRESET' || !socket.writable || refused.has(socket)) return
  refused.add(socket)
  afterAnswers(socket, () => sendMalformed(error, socket))
}

/** When one answer is finished the connection has turned to the next. A request that broke off in its body is the malformed one. */
function afterAnswers(socket: HttpSocket, then: () => void): void {
  const current = socket._httpMessage
  if (current?.req.complete === true) current.once('finish', () => afterAnswers(socket, then))
  else then()
}

function sendMalformed(error: NodeJS.ErrnoException, socket: Socket): void {
  if (!socket.writable) return
  const late = error.code === 'ERR_HTTP_REQUEST_TIMEOUT'
  const large = error.code === 'HPE_HEADER_OVERFLOW'
  const status = late ? '408 Request Timeout' : large ? '431 Request Header Fields Too Large' : '400 Bad Request'
  const body = JSON.stringify({
    code: 'invalid_request',
    message: 'The request is not valid HTTP.',
    request_id: 'none',
  })
  socket.end(
    `HTTP/1.1 ${status}\r\nContent-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
  )
}
