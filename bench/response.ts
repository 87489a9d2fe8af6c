/**
 * Reads HTTP/1.1 answers off one connection that never has more than one request under way.
 * Knows Content-Length and the bodiless 304 and 204; anything else is refused loudly rather than guessed.
 */
export interface Answer {
  status: number
  /** Holds the whole answer from `start` to `end`; valid until the next call of `push`. */
  bytes: Buffer
  bodyStart: number
  end: number
}

const headEnd = Buffer.from('\r\n\r\n')
const versionText = Buffer.from('http/1.1 ')
const lengthName = Buffer.from('content-length:')
const [lf, cr, space, zero, nine] = [10, 13, 32, 48, 57]

export class AnswerReader {
  #held: Buffer | undefined
  readonly #answer: Answer = { status: 0, bytes: Buffer.alloc(0), bodyStart: 0, end: 0 }

  /** The answer once it is whole; undefined while bytes are missing. Throws on what is not one single HTTP answer. */
  push(chunk: Buffer): Answer | undefined {
    const bytes = this.#held ? Buffer.concat([this.#held, chunk]) : chunk
    const head = bytes.indexOf(headEnd)
    const bodyStart = head + headEnd.length
    const end = head < 0 ? Number.POSITIVE_INFINITY : bodyStart + bodyLength(bytes, head)
    if (bytes.length < end) {
      // A chunk may be a view of a buffer that is read into again, so what is kept is copied.
      this.#held = this.#held ? bytes : Buffer.from(bytes)
      return undefined
    }
    if (bytes.length > end) throw new Error(`${bytes.length - end} bytes more than the answer has`)
    this.#held = undefined
    const answer = this.#answer
    answer.status = statusOf(bytes)
    answer.bytes = bytes
    answer.bodyStart = bodyStart
    answer.end = end
    return answer
  }
}

/** The value of a header, or undefined. For the rare reader: the measured path never calls it. */
export function headerOf({ bytes, bodyStart }: Answer, name: string): string | undefined {
  const lines = bytes.toString('latin1', 0, bodyStart).split('\r\n')
  const line = lines.find((text) => text.toLowerCase().startsWith(`${name}:`))
  return line?.slice(name.length + 1).trim()
}

function statusOf(bytes: Buffer): number {
  if (!startsWith(bytes, 0, versionText)) throw new Error('the answer does not begin with HTTP/1.1')
  const [hundreds = 0, tens = 0, ones = 0] = [bytes[9], bytes[10], bytes[11]]
  return (hundreds - zero) * 100 + (tens - zero) * 10 + ones - zero
}

function bodyLength(bytes: Buffer, head: number): number {
  const status = statusOf(bytes)
  if (status === 304 || status === 204) return 0
  for (let at = bytes.indexOf(lf) + 1; at > 0 && at < head; at = bytes.indexOf(lf, at) + 1) {
    if (startsWith(bytes, at, lengthName)) return readLength(bytes, at + lengthName.length)
  }
  throw new Error(`the answer (${status}) has no Content-Length`)
}

function startsWith(bytes: Buffer, at: number, text: Buffer): boolean {
  for (let i = 0; i < text.length; i++) {
    // Setting bit 5 makes letters lower case and leaves every other byte of the two texts as it is.
    if (((bytes[at + i] ?? 0) | 0x20) !== text[i]) return false
  }
  return true
}

function readLength(bytes: Buffer, from: number): number {
  let at = from
  while (bytes[at] === space) at++
  let length = 0
  for (let byte = bytes[at] ?? cr; byte !== cr; byte = bytes[++at] ?? cr) {
    if (byte < zero || byte > nine) throw new Error('the Content-Length is not a number')
    length = length * 10 + byte - zero
  }
  return length
}
