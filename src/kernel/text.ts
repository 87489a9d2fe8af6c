/** True for text without NUL and without lone surrogates: what PostgreSQL and UTF-8 can hold. */
export function isStorable(text: string): boolean {
  return text.isWellFormed() && !text.includes('\0')
}

/** The same of every text in a JSON value: JSON writes NUL and lone surrogates, and nothing else, as these escapes. */
export function isStorableJson(value: unknown): boolean {
  return !unstorable.test(JSON.stringify(value) ?? '')
}

const unstorable = /\\u0000|\\ud[89a-f][0-9a-f]{2}/

/** Empty, or nothing but white space: that of Unicode (which knows U+0085) or of JavaScript (which knows U+FEFF). */
export function isBlank(text: string): boolean {
  const first = text.charCodeAt(0)
  return !(first > 0x20 && first < 0x7f) && /^[\s\x85]*$/.test(text)
}

/** True when neither the first nor the last character is white space. */
export function isTrimmed(text: string): boolean {
  return !/^[\s\x85]|[\s\x85]$/.test(text)
}

/** Length in Unicode code points, counted no further than `stopAfter`. */
export function codePoints(text: string, stopAfter: number): number {
  if (text.length <= stopAfter) {
    let pairs = 0
    for (let i = 0; i < text.length - 1; i++) {
      const unit = text.charCodeAt(i)
      if (unit >= 0xd800 && unit <= 0xdbff) {
        const next = text.charCodeAt(i + 1)
        if (next >= 0xdc00 && next <= 0xdfff) {
          pairs++
          i++
        }
      }
    }
    return text.length - pairs
  }
  let count = 0
  for (const _ of text) {
    count++
    if (count > stopAfter) break
  }
  return count
}

const reserved = new Set(['anonymous', 'guest', 'undefined', 'null'])

/** The placeholder values no customer may be named by, whatever their case or surrounding white space. */
export function isReservedDistinctId(text: string): boolean {
  const trimmed = text.trim()
  return trimmed.length <= 9 && reserved.has(trimmed.toLowerCase())
}
