/**
 * Reads the plainest spelling of a request and nothing else. Whatever is spelled otherwise is not refused here: Node's own
 * parser reads the same bytes and decides. So a doubt costs time, never safety, and there is nothing to be lenient about.
 */

/** More than clients send; longer heads are Node's. */
const headCharsMax = 4096

/** `POST`, a path without query, HTTP/1.1, fields of visible ASCII, one to a line. */
const plainHead = /^POST (\/[a-z/-]{1,64}) HTTP\/1\.1\r\n(?:[!#$%&'*+.^_`|~0-9A-Za-z-]+:[\t\x20-\x7e]*\r\n)+\r\n/
const plainLength = /^(?:0|[1-9]\d{0,6})$/
const plainType = /^application\/json(?:; ?charset=utf-8)?$/i

/** Fields that change how a request is read or answered in ways that are not handled here. */
const otherFields = [
  'connection',
  'content-encoding',
  'expect',
  'origin',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]

export interface PlainHead {
  path: string
  /** Characters of the head, which are as many bytes, and bytes of the body. */
  headLength: number
  bodyLength: number
  /** By lower-case name: those that were asked for. */
  fields: ReadonlyMap<string, string>
}

/** Makes the reader; `wanted` are the lower-case names of further fields that its caller looks at. */
export function plainHeadReader(wanted: readonly string[]): (bytes: Buffer) => PlainHead | undefined {
  const known = new Set(['host', 'content-length', 'content-type', ...wanted, ...otherFields])
  const other = new Set(otherFields)

  return (bytes) => {
    const text = bytes.toString('latin1', 0, headCharsMax)
    const match = plainHead.exec(text)
    if (match === null) return undefined
    const [head, path = ''] = match
    const fields = new Map<string, string>()
    let from = head.indexOf('\r\n') + 2
    while (from < head.length - 2) {
      const end = head.indexOf('\r\n', from)
      const colon = head.indexOf(':', from)
      const name = head.slice(from, colon).toLowerCase()
      if (known.has(name)) {
        const value = head.slice(colon + 1, end).trim()
        const keepsAlive = name === 'connection' && value.toLowerCase() === 'keep-alive'
        if (fields.has(name) || (other.has(name) && !keepsAlive)) return undefined
        fields.set(name, value)
      }
      from = end + 2
    }
    const length = fields.get('content-length')
    if (!fields.get('host') || length === undefined || !plainLength.test(length)) return undefined
    if (!plainType.test(fields.get('content-type') ?? '')) return undefined
    return { path, headLength: head.length, bodyLength: Number(length), fields }
  }
}
