import Type, { type TSchema } from 'typebox'
import { refuse } from '../../kernel/errors.ts'
import type { Page } from '../../kernel/page.ts'
import { nullableString } from '../schema.ts'

/** The query of every list: `?limit=1..100&cursor=`. */
export const listQuery = {
  limit: Type.Optional(Type.String({ pattern: '^([1-9]|[1-9][0-9]|100)$', description: '1 to 100, default 20' })),
  cursor: Type.Optional(
    Type.String({ minLength: 1, maxLength: 1024, description: '`next_cursor` of the page before' }),
  ),
}

const limitDefault = 20

export function listOf<T extends TSchema>(item: T) {
  return Type.Object({
    object: Type.Literal('list'),
    data: Type.Array(item),
    has_more: Type.Boolean(),
    next_cursor: nullableString,
  })
}

/** Ids with this prefix, as positions of lists. */
export function idsOf(prefix: string): RegExp {
  return new RegExp(`^${prefix}_[0-9a-z]{1,48}$`)
}

/**
 * The page a query asks for, with one row more so that `listAnswer` knows whether there are more. A cursor is the base64url
 * of the JSON text of a position; what does not fit `position` never came from us: 400.
 */
export function pageOf({ limit, cursor }: { limit?: string; cursor?: string }, position: Pick<RegExp, 'test'>): Page {
  const after = cursor === undefined ? null : positionIn(cursor)
  if (after !== null && !position.test(after)) throw malformed()
  return { limit: Number(limit ?? limitDefault) + 1, after }
}

function positionIn(cursor: string): string {
  try {
    const position: unknown = JSON.parse(Buffer.from(cursor, 'base64url').toString())
    if (typeof position === 'string') return position
  } catch {
    // No JSON: as malformed as JSON of another kind.
  }
  throw malformed()
}

function malformed() {
  return refuse('invalid_request', { param: 'cursor', message: 'cursor is not a next_cursor of this list' })
}

export function cursorOf(position: string): string {
  return Buffer.from(JSON.stringify(position)).toString('base64url')
}

/** `positionOf` is what the next page begins after. */
export function listAnswer<Row, Shown>(
  rows: Row[],
  page: Page,
  { show, positionOf }: { show: (row: Row) => Shown; positionOf: (row: Row) => string },
) {
  const shown = rows.slice(0, page.limit - 1)
  const last = rows.length < page.limit ? undefined : shown.at(-1)
  return {
    object: 'list' as const,
    data: shown.map(show),
    has_more: last !== undefined,
    next_cursor: last === undefined ? null : cursorOf(positionOf(last)),
  }
}

/** A list that is always given whole. */
export function wholeList<Shown>(data: Shown[]) {
  return { object: 'list' as const, data, has_more: false, next_cursor: null }
}
