import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { posix } from 'node:path'
import test from 'node:test'

/**
 * Who stands on whom, from the ground up: a module imports from lower storeys only, and only their index.ts (kernel and db:
 * the file). Files directly in src, and the commands in src/cli, are the roof: they may import every file, and nobody imports
 * them. What a module needs from above it takes as an argument, the settings too. Tests, and what they keep in `testing`, follow the same line and may use test/harness.
 */
const storeys = [
  ['kernel'],
  ['db'],
  ['tenancy'],
  ['events'],
  ['customers'],
  ['entitlements'],
  ['experiences', 'purchases'],
  ['journeys'],
  ['profiles'],
  ['http'],
]
const roof = storeys.length
const src = posix.join(import.meta.dirname, '../src')
const files = globSync('**/*.ts', { cwd: src }).toSorted()
const sources = files.map((file) => ({ file, text: readFileSync(posix.join(src, file), 'utf8') }))

test('there is a house to look at, and every module has its place in it', () => {
  assert.ok(files.length > 20, `found ${files.length} files`)
  assert.deepEqual([...new Set(files.map(moduleOf))].filter((module) => storeyOf(module) < 0).toSorted(), [])
})

test('imports go down the line, and between modules only through index.ts', () => {
  const wrong = sources.flatMap(({ file, text }) => importsOf(text).flatMap((path) => judge(file, path)))
  assert.deepEqual(wrong, [])
})

test('the store simulator stands apart: it imports nothing of the service, and the service nothing of it', () => {
  const simulator = posix.join(src, '../store-sim')
  const its = globSync('**/*.ts', { cwd: simulator }).toSorted()
  assert.ok(its.length > 20, `found ${its.length} files`)
  const leaving = its.flatMap((file) =>
    importsOf(readFileSync(posix.join(simulator, file), 'utf8'))
      .map((path) => posix.join(posix.dirname(file), path))
      .filter((target) => target.startsWith('..'))
      .map((target) => `${file} imports ${target}`),
  )
  const entering = sources
    .filter(({ text }) => importsOf(text).some((path) => path.includes('store-sim/')))
    .map(({ file }) => file)
  assert.deepEqual([...leaving, ...entering], [])
})

test('the clock is read in kernel/clock.ts only, the environment in config.ts only', () => {
  const ours = sources.filter(({ file }) => !file.endsWith('.test.ts'))
  const reading = (what: RegExp) => ours.filter(({ text }) => what.test(text)).map(({ file }) => file)
  assert.deepEqual(reading(/Date\.now\(|new Date\(\)/), ['kernel/clock.ts'])
  assert.deepEqual(reading(/process\.env\b/), ['config.ts'])
})

test('random tests begin from the seed of the run', () => {
  const root = posix.join(src, '..')
  const tests = globSync('{src,test,bench,chaos,store-sim}/**/*.ts', { cwd: root })
  const own = tests.filter((file) =>
    /^(import|export) .* from 'fast-check'$/m.test(readFileSync(posix.join(root, file), 'utf8')),
  )
  assert.deepEqual(own, ['test/harness/random.ts'])
})

function judge(file: string, path: string): string[] {
  const target = posix.join(posix.dirname(file), path)
  const [from, to] = [moduleOf(file), moduleOf(target)]
  const isTest = file.endsWith('.test.ts') || file.includes('/testing/')
  if (from === to || (isTest && target.startsWith('../test/harness/'))) return []
  const down = storeyOf(to) >= 0 && storeyOf(to) < storeyOf(from)
  const open = from === '' || ['kernel', 'db'].includes(to) || posix.basename(target) === 'index.ts'
  return down && open ? [] : [`${file} imports ${target}`]
}

function importsOf(text: string): string[] {
  return [...text.matchAll(/\b(?:from|import)\s*\(?\s*'(\.[^']*)'/g)].map((match) => match[1] ?? '')
}

/** '' for the roof. */
function moduleOf(file: string): string {
  const [folder = ''] = file.includes('/') ? file.split('/') : []
  return folder === 'cli' ? '' : folder
}

function storeyOf(module: string): number {
  return module === '' ? roof : storeys.findIndex((storey) => storey.includes(module))
}
