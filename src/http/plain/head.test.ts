import assert from 'node:assert/strict'
import { createServer, type IncomingMessage } from 'node:http'
import { duplexPair } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { describe, test } from 'node:test'
import fc from '../../../test/harness/random.ts'
import { plainHeadReader } from './head.ts'

const read = plainHeadReader(['if-none-match', 'x-request-id'])
const plainLines = [
  'POST /feature/consume HTTP/1.1',
  'Host: turnpike.example:4000',
  'Content-Type: application/json',
  'Content-Length: 12',
]
const textOf = (lines: readonly string[]) => `${lines.join('\r\n')}\r\n\r\n`
const readLines = (lines: readonly string[]) => read(Buffer.from(textOf(lines), 'latin1'))

describe('what is read', () => {
  test('path, lengths and the fields that were asked for', () => {
    const lines = [
      ...plainLines,
      'If-None-Match:  "a" ',
      'X-REQUEST-ID: b',
      'X-Other: c',
      'Accept-Encoding: gzip',
      'Empty:',
    ]
    const head = readLines(lines)
    assert.ok(head)
    assert.deepEqual(
      { path: head.path, headLength: head.headLength, bodyLength: head.bodyLength },
      { path: '/feature/consume', headLength: textOf(lines).length, bodyLength: 12 },
    )
    assert.equal(head.fields.get('if-none-match'), '"a"')
    assert.equal(head.fields.get('x-request-id'), 'b')
    assert.equal(head.fields.get('x-other'), undefined)
  })

  test('of the bytes no more than the head', () => {
    const head = read(Buffer.from(`${textOf(plainLines)}POST /other HTTP/1.1\r\n\r\n`))
    assert.equal(head?.headLength, textOf(plainLines).length)
  })

  for (const line of [
    'Connection: keep-alive',
    'connection: Keep-Alive',
    'Content-Type: application/json; charset=utf-8',
    'Content-Type: Application/JSON;charset=UTF-8',
    'Content-Length: 0',
  ]) {
    test(line, () => assert.ok(readLines([...without(nameOf(line)), line])))
  }
})

describe('what is left to Node', () => {
  const first = (line: string) => [line, ...plainLines.slice(1)]
  const cases: Record<string, readonly string[]> = {
    'another method': first('GET /profile HTTP/1.1'),
    'another version': first('POST /profile HTTP/1.0'),
    'a query': first('POST /profile?a=b HTTP/1.1'),
    'an escape': first('POST /profil%65 HTTP/1.1'),
    'a whole address': first('POST http://turnpike.example/profile HTTP/1.1'),
    'two spaces': first('POST  /profile HTTP/1.1'),
    'no Host': without('host'),
    'an empty Host': [...without('host'), 'Host:'],
    'no length': without('content-length'),
    'a folded field': [...plainLines, 'X-Long: a', ' b'],
    'a space before the colon': [...plainLines, 'X-Long : a'],
    'a field without a name': [...plainLines, ': a'],
    'a field without a colon': [...plainLines, 'X-Long'],
    'a control character': [...plainLines, 'X-Long: a\u0001'],
    'a bare line feed': [...plainLines, 'X-Long: a\nX-Other: b'],
    'a bare carriage return': [...plainLines, 'X-Long: a\rX-Other: b'],
    'a byte beyond ASCII': [...plainLines, 'X-Long: \u00e4'],
    'more than 4 KiB': [...plainLines, `X-Long: ${'a'.repeat(4096)}`],
    'another charset': [...without('content-type'), 'Content-Type: application/json; charset=latin1'],
    'another type': [...without('content-type'), 'Content-Type: text/plain'],
    'no type': without('content-type'),
  }
  for (const value of ['', '+12', '-1', '0x0c', '012', '1e1', '12 12', '12, 12', '12345678']) {
    cases[`a length of ${JSON.stringify(value)}`] = [...without('content-length'), `Content-Length: ${value}`]
  }
  for (const line of [...plainLines.slice(1), 'Connection: keep-alive', 'X-Request-Id: a', 'If-None-Match: "a"']) {
    cases[`${nameOf(line)} twice`] = [...without(nameOf(line)), line, line]
  }
  for (const line of [
    ...[
      'Transfer-Encoding: chunked',
      'Transfer-Encoding: identity',
      'Content-Encoding: gzip',
      'Content-Encoding: identity',
    ],
    ...[
      'Expect: 100-continue',
      'Upgrade: h2c',
      'Origin: https://app.example',
      'Trailer: X-Sum',
      'TE: trailers',
      'Proxy-Connection: close',
    ],
    ...['Connection: close', 'Connection: upgrade', 'Connection: keep-alive, X-Long', 'Connection:'],
  ]) {
    cases[line] = [...plainLines, line]
  }
  for (const [name, lines] of Object.entries(cases)) test(name, () => assert.equal(readLines(lines), undefined))

  test('a head that is not whole, wherever it is cut', () => {
    const text = textOf(plainLines)
    for (let length = 0; length < text.length; length++) {
      assert.equal(read(Buffer.from(text.slice(0, length))), undefined, `${length} characters`)
    }
  })
})

test('what is read, Node reads the same: whatever a plain head is turned into', async () => {
  const oddLine = fc.constantFrom(
    ...['Transfer-Encoding: chunked', 'Content-Length: 3', 'content-length:12', 'Content-Length : 12', ' folded'],
    ...[
      'Host: b',
      'X-Request-Id: \t b\t',
      'If-None-Match: "a", W/"b"',
      'Connection: close',
      'Keep-Alive: timeout=5',
      'Proxy-Connection: close',
      '',
    ],
  )
  const oddText = fc.constantFrom(
    '\r',
    '\n',
    '\r\n',
    '\0',
    ' ',
    '\t',
    ':',
    '\u00ff',
    ',',
    '\u0085',
    'é',
    ';',
    '%',
    '/',
    'A',
  )
  const change = fc.oneof(
    fc.record({ kind: fc.constant('line' as const), at: fc.nat(6), line: oddLine }),
    fc.record({
      kind: fc.constant('text' as const),
      at: fc.nat(200),
      cut: fc.nat(2),
      text: fc.oneof(oddText, fc.constant('')),
    }),
    fc.record({ kind: fc.constant('again' as const), at: fc.nat(6), line: fc.nat(6) }),
  )
  let plain = 0
  await fc.assert(
    fc.asyncProperty(fc.array(change, { maxLength: 3 }), async (changes) => {
      let lines = [...plainLines, 'X-Request-Id: one', 'User-Agent: app/1.0 (phone; 17.2)']
      for (const c of changes) {
        if (c.kind === 'line') lines.splice(c.at, 0, c.line)
        else if (c.kind === 'again') lines.splice(c.at, 0, lines[c.line] ?? '')
        else {
          const text = textOf(lines)
          lines = [`${text.slice(0, c.at)}${c.text}${text.slice(c.at + c.cut)}`.replace(/\r\n\r\n$/, '')]
        }
      }
      const bytes = Buffer.from(textOf(lines), 'latin1')
      const head = read(bytes)
      if (head === undefined || head.headLength !== bytes.length) return
      plain++
      const seen = await readByNode(Buffer.concat([bytes, Buffer.alloc(head.bodyLength, 'x')]))
      assert.equal(seen.length, 2, 'it, and the one that is sent after it')
      const [request, body] = seen[0] ?? assert.fail()
      assert.deepEqual([request.method, request.url, body.length], ['POST', head.path, head.bodyLength])
      for (const [name, value] of head.fields) assert.equal(request.headers[name], value, name)
      assert.equal(seen[1]?.[0].url, '/after')
    }),
    { numRuns: 3000 },
  )
  assert.ok(plain > 300, `${plain} were plain`)
})

/** The requests that Node finds in these bytes and one more behind them, and their bodies. */
async function readByNode(bytes: Buffer): Promise<[IncomingMessage, Buffer][]> {
  const bodies: Promise<[IncomingMessage, Buffer]>[] = []
  const { promise, resolve } = Promise.withResolvers<void>()
  const server = createServer((request, response) => {
    bodies.push(buffer(request).then((body) => [request, body]))
    response.end()
    if (request.url === '/after') resolve()
  })
  server.on('clientError', () => resolve())
  const [ours, theirs] = duplexPair()
  server.emit('connection', theirs)
  ours.resume()
  ours.write(Buffer.concat([bytes, Buffer.from('GET /after HTTP/1.1\r\nHost: a\r\n\r\n')]))
  await promise
  const seen = await Promise.all(bodies)
  ours.destroy()
  return seen
}

function without(name: string): string[] {
  return plainLines.filter((line) => nameOf(line) !== name)
}

function nameOf(line: string): string {
  return (line.split(':')[0] ?? '').toLowerCase()
}
