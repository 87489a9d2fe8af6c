import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'

const root = new URL('../../', import.meta.url)
const table = readFileSync(new URL('src/purchases/invariants.md', root), 'utf8')
const rows = [...table.matchAll(/^\| (.+) \| `(.+)` \| (.+) \|$/gm)]

test('every invariant of purchases is named by a test that is there', () => {
  assert.ok(rows.length > 40)
  for (const [, invariant = '', file = '', title = ''] of rows) {
    const source = readFileSync(new URL(file, root), 'utf8')
    assert.ok(source.includes(title), `${invariant}: ${file} has no test "${title}"`)
  }
})
