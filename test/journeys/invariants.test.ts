import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'

const root = new URL('../../', import.meta.url)
const table = readFileSync(new URL('src/journeys/invariants.md', root), 'utf8')
const rows = [...table.matchAll(/^\| (.+) \| `(.+)` \| (.+) \|$/gm)]

test('every invariant of journeys is named by a test that is there', () => {
  const numbers = new Set(rows.flatMap(([, invariant = '']) => numbersOf(invariant)))
  assert.deepEqual(
    [...numbers].toSorted((a, b) => a - b),
    Array.from({ length: 26 }, (_, i) => i + 1),
  )
  for (const [, invariant = '', file = '', title = ''] of rows) {
    const source = readFileSync(new URL(file, root), 'utf8')
    assert.ok(source.includes(title), `${invariant}: ${file} has no test "${title}"`)
  }
})

/** The numbers that a line begins with, `2 to 7, 24 and 25` for one. */
function numbersOf(invariant: string): number[] {
  const [list = ''] = /^[0-9][0-9, toand]*/.exec(invariant) ?? []
  return list.split(/,| and /).flatMap((part) => {
    const [from = 0, to = from] = part.split(' to ').map((text) => Number.parseInt(text, 10))
    return Number.isNaN(from) ? [] : Array.from({ length: to - from + 1 }, (_, i) => from + i)
  })
}
