import { must } from '../../kernel/assert.ts'
import { backupLineBytesMax } from '../../kernel/limits.ts'
import { StartError } from '../../kernel/start-error.ts'

/**
 * A backup is SQL text, gzipped: what Turnpike needs to know stands in comments of one line of JSON, the rows stand in
 * `COPY … FROM stdin` sections that end with `\.`, so psql could load them too.
 */

/** A line that carries `facts`; psql takes it for a comment. */
export function factLine(facts: object): Buffer {
  return Buffer.from(`-- ${JSON.stringify(facts)}\n`)
}

export const sectionEnd = Buffer.from('\\.\n')

const lineFeed = 0x0a
const sectionEndInside = Buffer.from('\n\\.\n')

/** Reads what a backup file holds, from its beginning to its end. Throws StartError for a file that ends too early. */
export class BackupReader {
  readonly #chunks: AsyncIterator<Buffer>
  /** Read and not given yet; begins at the beginning of a line. */
  #rest: Buffer = Buffer.alloc(0)

  constructor(chunks: AsyncIterable<Buffer>) {
    this.#chunks = chunks[Symbol.asyncIterator]()
  }

  /** The next line, without its end. */
  async line(): Promise<string> {
    for (;;) {
      const end = this.#rest.indexOf(lineFeed)
      if (end >= 0) {
        const line = this.#rest.subarray(0, end).toString()
        this.#rest = this.#rest.subarray(end + 1)
        return line
      }
      if (this.#rest.length > backupLineBytesMax) throw new StartError('this is no backup of Turnpike')
      await this.#more()
    }
  }

  /** The facts on the next line. */
  async facts(): Promise<unknown> {
    const line = await this.line()
    try {
      if (line.startsWith('-- ')) return JSON.parse(line.slice(3))
    } catch {
      // As wrong as a line of another kind.
    }
    throw new StartError('this is no backup of Turnpike, or it is damaged')
  }

  /** The rows of the section that begins here, in pieces of whole rows. */
  async *rows(): AsyncGenerator<Buffer> {
    for (;;) {
      const isOver = this.#rest.subarray(0, sectionEnd.length).equals(sectionEnd)
      const end = isOver ? 0 : this.#rest.indexOf(sectionEndInside) + 1
      if (isOver || end > 0) {
        const rows = this.#rest.subarray(0, end)
        this.#rest = this.#rest.subarray(end + sectionEnd.length)
        if (rows.length > 0) yield rows
        return
      }
      const whole = this.#rest.lastIndexOf(lineFeed) + 1
      const rows = this.#rest.subarray(0, whole)
      this.#rest = this.#rest.subarray(whole)
      if (rows.length > 0) yield rows
      await this.#more()
    }
  }

  async #more(): Promise<void> {
    const next = await this.#chunks.next()
    if (next.done) throw new StartError('the backup ends too early: it was not written or copied whole')
    this.#rest = this.#rest.length === 0 ? next.value : Buffer.concat([this.#rest, next.value])
  }
}

/** Small pieces as larger ones: a piece per row would cost more than its compression. */
export async function* inPieces(rows: AsyncIterable<Buffer>, bytes: number): AsyncGenerator<Buffer> {
  let held: Buffer[] = []
  let length = 0
  for await (const piece of rows) {
    held.push(piece)
    length += piece.length
    if (length < bytes) continue
    yield held.length === 1 ? must(held[0], 'there is one') : Buffer.concat(held)
    held = []
    length = 0
  }
  if (length > 0) yield Buffer.concat(held)
}
