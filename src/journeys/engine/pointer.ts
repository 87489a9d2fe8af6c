import type { Json } from '../../events/index.ts'

/** What a JSON pointer (RFC 6901) names; undefined: nothing. */
export function pointedAt(value: Json, pointer: string): Json | undefined {
  if (pointer === '') return value
  if (!pointer.startsWith('/')) return undefined
  let at: Json | undefined = value
  for (const part of pointer.slice(1).split('/')) {
    const key = part.replaceAll('~1', '/').replaceAll('~0', '~')
    if (typeof at !== 'object' || at === null) return undefined
    if (Array.isArray(at)) at = /^(0|[1-9]\d*)$/.test(key) ? at[Number(key)] : undefined
    else at = Object.hasOwn(at, key) ? at[key] : undefined
  }
  return at
}
