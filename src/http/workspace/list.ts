import Type, { type TSchema } from 'typebox'
import { nullableString } from '../schema.ts'

/** The query of every list: `?limit=1..100&cursor=`. */
export const listQuery = {
  limit: Type.Optional(Type.String({ pattern: '^([1-9]|[1-9][0-9]|100)$', description: '1 to 100, default 20' })),
  cursor: Type.Optional(Type.String({ minLength: 1, maxLength: 1024 })),
}

export const limitDefault = 20

export function listOf<T extends TSchema>(item: T) {
  return Type.Object({
    object: Type.Literal('list'),
    data: Type.Array(item),
    has_more: Type.Boolean(),
    next_cursor: nullableString,
  })
}
