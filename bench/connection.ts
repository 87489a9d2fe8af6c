import { connect, type Socket } from 'node:net'
import { type Answer, AnswerReader } from './response.ts'

/** Larger than any answer of the measured operations; a larger one is put together from several reads. */
const readBufferBytes = 64 * 1024

const nothing = Buffer.alloc(0)

export interface ConnectionEvents {
  onAnswer: (connection: Connection, answer: Answer) => void
  /** The connection is of no more use. */
  onFailure: (connection: Connection, error: Error) => void
}

/** One keep-alive connection over loopback with at most one request under way. */
export class Connection {
  readonly slot: number
  /** Set by whoever sends: the request's number, the instant its latency counts from, and what the answer must hold. */
  n = 0
  since = 0
  needle: Buffer = nothing
  readonly #reader = new AnswerReader()
  readonly #events: ConnectionEvents
  readonly #socket: Socket
  #closed = false

  private constructor(port: number, slot: number, events: ConnectionEvents) {
    this.slot = slot
    this.#events = events
    this.#socket = connect({
      host: '127.0.0.1',
      port,
      noDelay: true,
      // One buffer for all reads: no stream, no allocation for each answer.
      onread: { buffer: Buffer.allocUnsafe(readBufferBytes), callback: (length, buffer) => this.#read(length, buffer) },
    })
    this.#socket.on('error', (error) => this.#fail(error))
    this.#socket.on('close', () => this.#fail(new Error('the server closed the connection')))
  }

  /** Resolves once connected. */
  static open(port: number, slot: number, events: ConnectionEvents): Promise<Connection> {
    const connection = new Connection(port, slot, events)
    return new Promise((resolve, reject) => {
      connection.#socket.once('connect', () => resolve(connection))
      connection.#socket.once('error', reject)
    })
  }

  write(bytes: Buffer): void {
    this.#socket.write(bytes)
  }

  close(): void {
    this.#closed = true
    this.#socket.destroy()
  }

  #fail(error: Error): void {
    if (this.#closed) return
    this.close()
    this.#events.onFailure(this, error)
  }

  #read(length: number, buffer: Uint8Array): boolean {
    const chunk = Buffer.from(buffer.buffer, buffer.byteOffset, length)
    let answer: Answer | undefined
    try {
      answer = this.#reader.push(chunk)
    } catch (error) {
      this.#fail(error instanceof Error ? error : new Error(String(error)))
      return false
    }
    if (answer) this.#events.onAnswer(this, answer)
    return true
  }
}
