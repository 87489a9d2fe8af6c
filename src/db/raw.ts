import type { Writable } from 'node:stream'
import type pg from 'pg'

/** A named, prepared statement of a hot path. */
export interface Statement {
  name: string
  text: string
}

export type RawRow = (string | null)[]

const asText = { getTypeParser: () => (value: string) => value }

/**
 * Runs a prepared statement and gives its rows as arrays of the text PostgreSQL sent; the caller converts the columns it
 * needs. Rows as objects and parsed dates cost more than the rest of a hot request.
 */
export async function raw(client: pg.ClientBase, { name, text }: Statement, values: unknown[]): Promise<RawRow[]> {
  const result = await client.query<RawRow>({
    name,
    text,
    values,
    rowMode: 'array',
    types: asText as pg.CustomTypesConfig,
  })
  return result.rows
}

/**
 * Sends what `send` starts as one piece and waits for all of it, so that nothing is under way any more when the first error
 * is thrown. For pipelined connections: a write of its own for each statement took a third of a hot batch's time.
 */
export async function pipeline<const T extends readonly unknown[]>(
  client: pg.ClientBase,
  send: () => T,
): Promise<{ -readonly [K in keyof T]: Awaited<T[K]> }> {
  const { stream } = (client as unknown as { connection: { stream: Writable } }).connection // not in the driver's types
  stream.cork()
  process.nextTick(() => stream.uncork())
  const results = await Promise.allSettled(send())
  const failed = results.find((result) => result.status === 'rejected')
  if (failed) throw failed.reason
  return results.map((result) => (result as PromiseFulfilledResult<unknown>).value) as {
    -readonly [K in keyof T]: Awaited<T[K]>
  } // none was rejected
}
