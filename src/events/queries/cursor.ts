import { createHmac, hash, timingSafeEqual } from 'node:crypto'
import { canonicalJson } from '../../kernel/canonical-json.ts'
import { refuse } from '../../kernel/errors.ts'

/** Where the next page of a list begins. */
export type EventCursor =
  | {
      sort: 'timestamp'
      /** Nothing above this position belongs to the list: it was not there when the first page was read. */
      bound: bigint
      /** The last event of the page before. */
      at: number
      position: bigint
    }
  /** Everything up to `position` was seen. */
  | { sort: 'position'; position: bigint }

export interface CursorSigner {
  write: (cursor: EventCursor, query: unknown) => string
  /** Throws 400 for a cursor of another list, or one that was never given out. */
  read: (text: string, query: unknown) => EventCursor
}

/** Signed together with a hash of the query, so that a cursor goes on with the list it came from or not at all. */
export function createCursors(secret: Buffer): CursorSigner {
  const key = createHmac('sha256', secret).update('event cursors').digest()
  const signatureOf = (body: string, query: unknown) =>
    createHmac('sha256', key)
      .update(`${body}.${hash('sha256', canonicalJson(query))}`)
      .digest()
      .subarray(0, 16)
  return {
    write(cursor, query) {
      const body = Buffer.from(bodyOf(cursor)).toString('base64url')
      return `${body}.${signatureOf(body, query).toString('base64url')}`
    },
    read(text, query) {
      const [body = '', signature = ''] = text.split('.')
      const given = Buffer.from(signature, 'base64url')
      const expected = signatureOf(body, query)
      if (given.length !== expected.length || !timingSafeEqual(given, expected)) {
        throw refuse('invalid_request', { param: 'cursor', message: 'cursor is not a next_cursor of this list' })
      }
      return cursorOf(Buffer.from(body, 'base64url').toString())
    },
  }
}

function bodyOf(cursor: EventCursor): string {
  return cursor.sort === 'position' ? `p ${cursor.position}` : `t ${cursor.bound} ${cursor.at} ${cursor.position}`
}

/** Of a body that was signed, so written above. */
function cursorOf(body: string): EventCursor {
  const [sort, first = '0', at, position] = body.split(' ')
  if (sort === 'p') return { sort: 'position', position: BigInt(first) }
  return { sort: 'timestamp', bound: BigInt(first), at: Number(at), position: BigInt(position ?? 0) }
}
