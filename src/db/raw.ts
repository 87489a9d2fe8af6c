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
  const result = await client.query<RawRow>({ name, text, values, rowMode: 'array', types: asText as pg.CustomTypesConfig })
  return result.rows
}
