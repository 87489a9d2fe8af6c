import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from '../../../test/harness/random.ts'
import { BackupReader, factLine, inPieces, sectionEnd } from './file.ts'

/** Rows as COPY writes them: a backslash in a value is doubled, so no row is the end of the section. */
const row = fc
  .string({ unit: fc.constantFrom('a', '.', '\\', '\t', '\n', 'ß', '🙂'), maxLength: 8 })
  .map((value) => `${value.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')}\n`)

test('what was written is read, however the bytes are cut', async () => {
  const sections = fc.array(fc.array(row, { maxLength: 6 }), { minLength: 1, maxLength: 4 })
  await fc.assert(
    fc.asyncProperty(sections, fc.infiniteStream(fc.integer({ min: 1, max: 7 })), async (given, cuts) => {
      const whole = Buffer.concat(given.flatMap((rows, n) => [factLine({ n }), Buffer.from(rows.join('')), sectionEnd]))
      const reader = new BackupReader(cut(whole, cuts))
      for (const [n, rows] of given.entries()) {
        assert.deepEqual(await reader.facts(), { n })
        let read = ''
        for await (const piece of reader.rows()) {
          assert.equal(piece.at(-1), 0x0a, 'pieces are whole rows')
          read += piece.toString()
        }
        assert.equal(read, rows.join(''))
      }
      await assert.rejects(reader.line(), /ends too early/)
    }),
    { numRuns: 200 },
  )
})

test('a line without an end, and one that carries no facts, are refused', async () => {
  const reader = new BackupReader(of('copy x from stdin;\n-- {"half":\n'))
  await assert.rejects(reader.facts(), /no backup/)
  await assert.rejects(reader.facts(), /no backup/)
  await assert.rejects(new BackupReader(of('-- {}')).facts(), /ends too early/)
})

test('pieces become larger ones, and lose nothing', async () => {
  const rows = Array.from({ length: 100 }, (_, n) => `${n}\n`)
  const pieces: string[] = []
  for await (const piece of inPieces(of(...rows), 50)) pieces.push(piece.toString())
  assert.equal(pieces.join(''), rows.join(''))
  assert.ok(pieces.length > 1 && pieces.slice(0, -1).every((piece) => piece.length >= 50))
})

async function* of(...texts: string[]): AsyncGenerator<Buffer> {
  for (const text of texts) yield Buffer.from(text)
}

async function* cut(whole: Buffer, lengths: Iterator<number>): AsyncGenerator<Buffer> {
  for (let at = 0; at < whole.length; ) {
    const length = Number(lengths.next().value)
    yield Buffer.from(whole.subarray(at, at + length))
    at += length
  }
}
