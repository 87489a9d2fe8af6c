import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { mutants } from './mutants.ts'

const root = new URL('../../', import.meta.url)

test('what each mutant changes stands in its file exactly once, and the tests that should see it are there', () => {
  for (const { name, file, search, replacement, tests } of mutants) {
    const source = readFileSync(new URL(file, root), 'utf8')
    assert.equal(source.split(search).length - 1, 1, `${name}: ${file} has its text not exactly once: ${search}`)
    assert.notEqual(search, replacement, name)
    assert.ok(tests.length > 0, name)
    for (const one of tests) assert.ok(existsSync(new URL(one, root)), `${name}: ${one} is not there`)
  }
})

test('mutants have names of their own', () => {
  assert.equal(new Set(mutants.map(({ name }) => name)).size, mutants.length)
})
