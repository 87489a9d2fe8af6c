/**
 * Runs the mutants, all or those named: `npm run mutants [-- name…]`. Each is put into a copy of the tree, where the tests that
 * should see it run; one that they let pass has survived. Ends with 1 when any did.
 */
import { spawn } from 'node:child_process'
import { cp, readFile, symlink, writeFile } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { text } from 'node:stream/consumers'
import { removeFolder, startTestServer, temporaryFolder } from '../harness/server.ts'
import { type Mutant, mutants } from './mutants.ts'

const root = join(import.meta.dirname, '../..')
const leftOut = ['.git', 'node_modules', 'data', 'bench/results']

process.exitCode = await run(process.argv.slice(2))

async function run(names: string[]): Promise<number> {
  const chosen = names.length === 0 ? mutants : mutants.filter(({ name }) => names.includes(name))
  const unknown = names.find((name) => !mutants.some((one) => one.name === name))
  if (unknown !== undefined) throw new Error(`no mutant is called ${unknown}`)
  const folder = await temporaryFolder()
  process.env.TEST_FOLDER = folder
  try {
    await using server = await startTestServer()
    const tree = await copyOfTheTree(folder)
    const failing = (files: string[]) => firstFailing(tree, files, server.url)
    const sound = new Set<string>()
    let survivors = 0
    for (const mutant of chosen) {
      const began = performance.now()
      const killer = await withMutant(tree, mutant, () => failing(mutant.tests))
      if (killer && !sound.has(killer.file)) {
        const other = await failing([killer.file])
        if (other) throw new Error(`${killer.file} fails without any mutant: ${other.title}`)
        sound.add(killer.file)
      }
      const seconds = ((performance.now() - began) / 1000).toFixed(1)
      if (!killer) survivors += 1
      const verdict = killer ? `killed by "${killer.title}" (${killer.file})` : `SURVIVED: ${mutant.defect}`
      console.log(`${mutant.name} (${seconds} s): ${verdict}`)
    }
    console.log(`${chosen.length - survivors} of ${chosen.length} mutants were killed`)
    return survivors === 0 ? 0 : 1
  } finally {
    await removeFolder(folder)
  }
}

async function copyOfTheTree(folder: string): Promise<string> {
  const tree = join(folder, 'tree')
  await cp(root, tree, { recursive: true, filter: (path) => !leftOut.includes(relative(root, path)) })
  await symlink(join(root, 'node_modules'), join(tree, 'node_modules'))
  return tree
}

async function withMutant<T>(tree: string, { file, search, replacement }: Mutant, work: () => Promise<T>): Promise<T> {
  const path = join(tree, file)
  const sound = await readFile(path, 'utf8')
  const changed = sound.replace(search, () => replacement)
  if (changed === sound) throw new Error(`${file} has nothing to be changed`)
  await writeFile(path, changed)
  try {
    return await work()
  } finally {
    await writeFile(path, sound)
  }
}

/** One file after the other, up to the first that fails. */
async function firstFailing(
  tree: string,
  files: readonly string[],
  url: string,
): Promise<{ file: string; title: string } | undefined> {
  for (const file of files) {
    const options = ['--test', '--test-reporter=tap', '--test-timeout=180000']
    const child = spawn(process.execPath, [...options, file], {
      cwd: tree,
      env: { ...process.env, TEST_SERVER_URL: url },
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const said = await text(child.stdout)
    if (/^# fail 0$/m.test(said) && /^# pass [1-9]/m.test(said) && /^# cancelled 0$/m.test(said)) continue
    const titles = [...said.matchAll(/^ *not ok [0-9]+ - (.*)$/gm)].map(([, title = '']) => title)
    return { file, title: titles.find((title) => title !== file) ?? 'no test of it, but the file as a whole' }
  }
  return undefined
}
