import type { Socket } from 'node:net'
import { refuseMalformed } from '../malformed.ts'

/** An answer: its head up to the fields that say whether the connection stays, and its body in two pieces. */
export interface Wire {
  head: string
  text: string
  /** Whether the text has as many bytes as characters. */
  ascii: boolean
  rest: Buffer | undefined
}

export interface Rules {
  /** Starts on the one request that `bytes` are; `more` when they are the beginning of one; undefined when they are not plain. */
  begin: (bytes: Buffer) => Promise<Wire> | 'more' | undefined
  /** `bytes` were read and are not plain: they, and all that follows, are the framework's. */
  handOver: (socket: Socket, bytes: Buffer) => void
  /** Milliseconds since any instant; it never goes back. */
  now: () => number
  /** Milliseconds for a request to come whole, and from an answer to the next request. */
  receiveMsMax: number
  keepAliveMs: number
  isClosing: () => boolean
}

/**
 * A connection as long as its requests are plain: each has come whole, in one piece or in two, and the next one only after
 * its answer. So no more is ever kept of a connection than those pieces.
 */
export class PlainConnection {
  readonly #socket: Socket
  readonly #rules: Rules
  readonly #left: () => void
  #state: 'new' | 'idle' | 'part' | 'answering' | 'left' = 'new'
  /** When the state began, by `rules.now`. */
  #since: number
  /** The first piece of a request. */
  #part: Buffer | undefined
  /** What came before the answer was out. */
  #early: Buffer | undefined
  /** The caller sends no more. */
  #ended = false

  /** `left` is called once, when there is nothing more to be done here. */
  constructor(socket: Socket, rules: Rules, left: () => void) {
    this.#socket = socket
    this.#rules = rules
    this.#left = left
    this.#since = rules.now()
    socket.on('data', this.#onData)
    socket.on('end', this.#onEnd)
    socket.on('error', this.#onError)
    socket.on('close', this.#leave)
  }

  /** Ends the connection if nobody waits for an answer on it. */
  closeIfIdle(): void {
    if (this.#state !== 'idle') return
    this.#leave()
    this.#socket.on('error', this.#onError)
    // The end of an answer may still be on its way.
    this.#socket.destroySoon()
  }

  /** Ends the connection if the next request, or the rest of one, takes too long. */
  closeIfLate(): void {
    const waited = this.#rules.now() - this.#since
    if (this.#state === 'idle' && waited > this.#rules.keepAliveMs) this.#socket.destroy()
    if ((this.#state === 'new' || this.#state === 'part') && waited > this.#rules.receiveMsMax) {
      this.#refuse('ERR_HTTP_REQUEST_TIMEOUT')
    }
  }

  #onData = (chunk: Buffer): void => {
    if (this.#state === 'answering') {
      this.#early = chunk
      this.#socket.pause()
      return
    }
    const bytes = this.#part === undefined ? chunk : Buffer.concat([this.#part, chunk])
    const begun = this.#rules.begin(bytes)
    if (begun === 'more' && this.#part === undefined) {
      this.#part = bytes
      this.#enter('part')
    } else if (begun === 'more' || begun === undefined) {
      this.#handOver(bytes)
    } else {
      this.#part = undefined
      this.#state = 'answering'
      begun.then(this.#onAnswer).catch(this.#onError)
    }
  }

  #onAnswer = ({ head, text, ascii, rest }: Wire): void => {
    if (this.#state === 'left') return
    const last = this.#ended || this.#rules.isClosing()
    const flows = this.#write(head + (last ? lastFields : fieldsFor(this.#rules.keepAliveMs)) + text, ascii, rest)
    if (last) this.#socket.destroySoon()
    else if (flows) this.#next()
    else this.#socket.once('drain', this.#next)
  }

  #write(text: string, ascii: boolean, rest: Buffer | undefined): boolean {
    const socket = this.#socket
    const encoding = ascii ? 'latin1' : 'utf8'
    if (rest === undefined) return socket.write(text, encoding)
    socket.cork()
    socket.write(text, encoding)
    const flows = socket.write(rest)
    socket.uncork()
    return flows
  }

  #next = (): void => {
    if (this.#state === 'left') return
    if (this.#ended || this.#rules.isClosing()) this.#socket.destroySoon()
    else if (this.#early !== undefined) this.#handOver(this.#early)
    else this.#enter('idle')
  }

  #enter(state: 'idle' | 'part'): void {
    this.#state = state
    this.#since = this.#rules.now()
  }

  #handOver(bytes: Buffer): void {
    this.#leave()
    this.#rules.handOver(this.#socket, bytes)
  }

  #onEnd = (): void => {
    this.#ended = true
    if (this.#state === 'part') this.#refuse('HPE_INVALID_EOF_STATE')
    else if (this.#state !== 'answering') this.#socket.end()
  }

  #onError = (): void => {
    this.#socket.destroy()
  }

  #refuse(code: string): void {
    this.#leave()
    this.#socket.on('error', this.#onError)
    refuseMalformed(Object.assign(new Error(code), { code }), this.#socket)
    setTimeout(() => this.#socket.destroy(), refusalReadMsMax).unref()
  }

  #leave = (): void => {
    if (this.#state === 'left') return
    this.#state = 'left'
    const socket = this.#socket
    socket.off('data', this.#onData)
    socket.off('end', this.#onEnd)
    socket.off('error', this.#onError)
    socket.off('drain', this.#next)
    socket.off('close', this.#leave)
    this.#left()
  }
}

/** For a caller to read why, and end its side. */
const refusalReadMsMax = 1000

const lastFields = 'Connection: close\r\n\r\n'

function fieldsFor(keepAliveMs: number): string {
  return `Connection: keep-alive\r\nKeep-Alive: timeout=${Math.floor(keepAliveMs / 1000)}\r\n\r\n`
}
