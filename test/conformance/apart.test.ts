import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { posix } from 'node:path'
import { test } from 'node:test'

test('validator and reference client are written apart from the server: nothing of src is imported', () => {
  const folder = posix.join(import.meta.dirname, '..')
  const files = globSync('{conformance,reference-client}/**/*.ts', { cwd: folder })
  // The client's test over the real service starts one; it decides nothing of what is right.
  const own = files.filter((file) => !file.endsWith('/service.test.ts'))
  const foreign = own.flatMap((file) => {
    const text = readFileSync(posix.join(folder, file), 'utf8')
    const paths = [...text.matchAll(/\b(?:from|import)\s*\(?\s*'(\.[^']*)'/g)].map(([, path = '']) => path)
    const targets = paths.map((path) => posix.join(posix.dirname(file), path))
    // Which gives fast-check its seed, and imports nothing else.
    const others = targets.filter((target) => target !== 'harness/random.ts')
    return others.filter((target) => !/^(?:conformance|reference-client)\//.test(target))
  })
  assert.ok(own.length > 30)
  assert.deepEqual(foreign, [])
})
