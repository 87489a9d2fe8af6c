import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'

const root = new URL('../../', import.meta.url)
const table = readFileSync(new URL('src/entitlements/invariants.md', root), 'utf8')
const rows = [...table.matchAll(/^\| (.+) \| `(.+)` \| (.+) \|$/gm)].map(
  ([, invariant = '', file = '', title = '']) => {
    return { invariant, file, title }
  },
)

test('every invariant of the ledger is named by a test that is there', () => {
  for (const { invariant, file, title } of rows) {
    const source = readFileSync(new URL(file, root), 'utf8')
    assert.ok(source.includes(title), `${invariant}: ${file} has no test "${title}"`)
  }
  const numbers = new Set(rows.map(({ invariant }) => Number.parseInt(invariant, 10)))
  const open = Array.from({ length: 34 }, (_, i) => i + 1).filter((number) => !numbers.has(number))
  assert.deepEqual(open, [])
})
