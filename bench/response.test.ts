import assert from 'node:assert/strict'
import { test } from 'node:test'
import { AnswerReader, headerOf } from './response.ts'

const whole = Buffer.from('HTTP/1.1 200 OK\r\nX-A: b\r\nContent-Length: 12\r\nETag: "e"\r\n\r\n{"a":"\r\n\r\n"}')

test('an answer cut anywhere is read as the whole one', () => {
  for (let first = 1; first < whole.length; first++) {
    for (let second = first; second < whole.length; second += 7) {
      const reader = new AnswerReader()
      const parts = [whole.subarray(0, first), whole.subarray(first, second), whole.subarray(second)]
      const answers = parts.filter((part) => part.length > 0).map((part) => reader.push(part))
      const answer = answers.pop()
      assert.ok(answers.every((early) => early === undefined))
      assert.equal(answer?.status, 200)
      assert.equal(answer.bytes.toString('utf8', answer.bodyStart, answer.end), '{"a":"\r\n\r\n"}')
    }
  }
})

test('a cut answer is read right when the buffer it came in is used again', () => {
  const reader = new AnswerReader()
  const buffer = Buffer.from(whole.subarray(0, 40))
  assert.equal(reader.push(buffer), undefined)
  buffer.fill(0)
  assert.equal(reader.push(whole.subarray(40))?.status, 200)
})

test('one reader reads one answer after the other', () => {
  const reader = new AnswerReader()
  assert.equal(reader.push(whole)?.status, 200)
  assert.equal(reader.push(Buffer.from('HTTP/1.1 409 Conflict\r\ncontent-length: 0\r\n\r\n'))?.status, 409)
})

test('a 304 has no body, whatever its Content-Length says', () => {
  const answer = new AnswerReader().push(
    Buffer.from('HTTP/1.1 304 Not Modified\r\netag: "e"\r\ncontent-length: 9\r\n\r\n'),
  )
  assert.equal(answer?.status, 304)
  assert.equal(answer.bodyStart, answer.end)
  assert.equal(headerOf(answer, 'etag'), '"e"')
})

test('what is not one HTTP answer is refused', () => {
  const refused = {
    'two answers': Buffer.concat([whole, whole]),
    'no length': Buffer.from('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n'),
    'no number': Buffer.from('HTTP/1.1 200 OK\r\ncontent-length: 1e3\r\n\r\n'),
    'another protocol': Buffer.from('SMTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n'),
  }
  for (const [name, bytes] of Object.entries(refused)) assert.throws(() => new AnswerReader().push(bytes), name)
})
