import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'

const folder = import.meta.dirname
const read = (file: string) => readFileSync(join(folder, file), 'utf8')
const named = [...read('rows.md').matchAll(/^\| (.+) \| `(.+\.ts)` \| (.+) \|$/gm)].map(
  ([, row = '', file = '', title = '']) => ({
    ...{ row, file, title },
  }),
)

test('every row of the decision tables is named with a test that is there', () => {
  assert.ok(named.length > 200)
  for (const { row, file, title } of named)
    assert.ok(read(file).includes(title), `${row}: ${file} has no test "${title}"`)
})

/** Titles of tests, and rows of tables that are played. */
const titles = /\brow: (['`])(.+?)\1|\btest\((['`])(.+?)\3, /g

test('every test that plays rows is named by the row that it plays', () => {
  const files = readdirSync(folder).filter((file) => /^rows-.*\.test\.ts$/.test(file))
  assert.equal(files.length, 8)
  for (const file of files) {
    const here = new Set(named.filter((each) => each.file === file).map(({ title }) => title))
    const played = [...read(file).matchAll(titles)].map(([, , row, , title]) => row ?? title ?? '')
    assert.ok(played.length > 5, file)
    for (const title of played) assert.ok(here.has(title), `${file}: "${title}" is in no row`)
  }
})
