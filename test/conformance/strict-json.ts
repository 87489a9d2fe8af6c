/** JSON as the strictest client reads it. Arrays and objects may nest this deep, the root counted. */
export const nestingMax = 64

/** What is wrong with the bytes, and where. */
export class JsonError extends Error {}

/**
 * The value of UTF-8 bytes. Refuses a byte order mark, bytes that are no UTF-8, keys that repeat (compared after unescaping,
 * by code unit), nesting beyond `nestingMax`, numbers that are not finite, and anything after the root.
 */
export function parseStrict(bytes: Uint8Array): unknown {
  const text = decode(bytes)
  let at = 0
  skipSpace()
  const value = parseValue(0)
  skipSpace()
  if (at < text.length) fail('something follows the root value')
  return value

  function parseValue(depth: number): unknown {
    const first = text[at]
    if (first === '{') return parseObject(depth + 1)
    if (first === '[') return parseArray(depth + 1)
    return first === '"' ? parseString() : parseWord()
  }

  function parseObject(depth: number): Record<string, unknown> {
    enter(depth)
    const entries = new Map<string, unknown>()
    while (!closes('}', entries.size === 0)) {
      if (text[at] !== '"') fail('a key is expected')
      const key = parseString()
      if (entries.has(key)) fail(`the key ${JSON.stringify(key)} repeats`)
      skipSpace()
      if (text[at] !== ':') fail('a colon is expected')
      at += 1
      skipSpace()
      entries.set(key, parseValue(depth))
    }
    // Own properties whatever their names: __proto__ is a key like any other.
    return Object.fromEntries(entries)
  }

  function parseArray(depth: number): unknown[] {
    enter(depth)
    const items: unknown[] = []
    while (!closes(']', items.length === 0)) items.push(parseValue(depth))
    return items
  }

  function enter(depth: number): void {
    if (depth > nestingMax) fail(`more than ${nestingMax} arrays and objects in each other`)
    at += 1
  }

  /** Steps over the end of an array or object, or over what stands before its next member. */
  function closes(end: string, first: boolean): boolean {
    skipSpace()
    if (text[at] === end) {
      at += 1
      return true
    }
    if (first) return false
    if (text[at] !== ',') fail('a comma is expected')
    at += 1
    skipSpace()
    if (text[at] === end) fail('a comma stands before the end')
    return false
  }

  function parseString(): string {
    const found = match(/"[^"\\]*(?:\\.[^"\\]*)*"/sy)
    if (found === undefined) return fail('a string is not closed')
    try {
      return JSON.parse(found)
    } catch {
      return fail('a string holds a control character or an unknown escape')
    }
  }

  function parseWord(): unknown {
    const found = match(/true|false|null|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y)
    if (found === undefined) return fail('a value is expected')
    const value: unknown = JSON.parse(found)
    return typeof value !== 'number' || Number.isFinite(value) ? value : fail('a number is not finite')
  }

  function skipSpace(): void {
    match(/[ \t\n\r]*/y)
  }

  function match(pattern: RegExp): string | undefined {
    pattern.lastIndex = at
    const [found] = pattern.exec(text) ?? []
    at += found?.length ?? 0
    return found
  }

  function fail(reason: string): never {
    throw new JsonError(`${reason} at character ${at}`)
  }
}

function decode(bytes: Uint8Array): string {
  try {
    const text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
    if (!text.startsWith('\ufeff')) return text
  } catch {
    throw new JsonError('the bytes are no UTF-8')
  }
  throw new JsonError('the bytes begin with a byte order mark')
}
