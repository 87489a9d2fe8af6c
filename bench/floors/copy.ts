import pg from 'pg'

/** One line of COPY's text format; `\` is what it escapes with, and JSON text holds no raw tab or line break. */
export function copyLine(fields: string[]): string {
  return `${fields.map((field) => (field.includes('\\') ? field.replaceAll('\\', '\\\\') : field)).join('\t')}\n`
}

/** The two calls of pg's connection that its types leave out. */
interface CopyConnection {
  sendCopyFromChunk(chunk: Buffer): void
  endCopyFrom(): void
}

class CopyIn extends pg.Query {
  readonly #lines: Buffer

  constructor(text: string, lines: string, done: (error: Error | null | undefined) => void) {
    super(text, done)
    this.#lines = Buffer.from(lines)
  }

  /** pg calls this when the server is ready for the lines. */
  handleCopyInResponse(connection: CopyConnection): void {
    connection.sendCopyFromChunk(this.#lines)
    connection.endCopyFrom()
  }
}

/** Runs one `copy … from stdin` in its own transaction; resolves after COMMIT. */
export function copyIn(client: pg.PoolClient, text: string, lines: string): Promise<void> {
  return new Promise((resolve, reject) => {
    client.query(new CopyIn(text, lines, (error) => (error ? reject(error) : resolve())))
  })
}
