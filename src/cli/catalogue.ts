import { readFile } from 'node:fs/promises'
import { text } from 'node:stream/consumers'
import type { Sql } from '../db/pool.ts'
import { Refusal } from '../kernel/errors.ts'
import { StartError } from '../kernel/start-error.ts'
import { findProjectScope, type Scope } from '../tenancy/index.ts'
import { applySteps } from './catalogue/apply.ts'
import { currentCatalogue } from './catalogue/current.ts'
import { readCatalogue } from './catalogue/file.ts'
import { type Plan, planImport, type Step } from './catalogue/plan.ts'
import { type Input, oneOf, textOf } from './command.ts'
import { withDatabase } from './database.ts'
import { plain, print } from './print.ts'

/** `export`: the catalogue of one environment of a project on standard output. */
export async function exportCatalogue(input: Input): Promise<void> {
  await withDatabase('export', async ({ pool }) => {
    const scope = await scopeOf(pool, input)
    const catalogue = await pool.transaction((tx) => currentCatalogue(tx, scope))
    print(JSON.stringify(catalogue, null, 2))
  })
}

/** `import`: the other way round, in one transaction. */
export async function importCatalogue(input: Input): Promise<void> {
  const [file = ''] = input.words
  const wanted = readCatalogue(await contentOf(file))
  await withDatabase('import', async ({ config, pool }) => {
    const scope = await scopeOf(pool, input)
    const isDry = input.options['dry-run'] === true
    const plan = await pool
      .transaction(async (tx) => {
        const decided = planImport(await currentCatalogue(tx, scope), wanted)
        if (decided.obstacles.length > 0) throw new StartError(decided.obstacles.join('; '))
        await applySteps(tx, scope, decided.steps, config)
        // The whole of it was tried: what it says it would do, it can do.
        if (isDry) throw new DryRun(decided)
        return decided
      })
      .catch((error: unknown) => {
        if (error instanceof DryRun) return error.plan
        throw error instanceof Refusal ? new StartError(error.message) : error
      })
    report(plan, { isDry, scope })
  })
}

class DryRun extends Error {
  readonly plan: Plan

  constructor(plan: Plan) {
    super('rolled back')
    this.plan = plan
  }
}

function report({ steps, unnamed }: Plan, { isDry, scope }: { isDry: boolean; scope: Scope }): void {
  for (const step of steps) print(plain(lineOf(step)))
  for (const name of unnamed) print(plain(`left alone, not in the file: ${name}`))
  const where = `${scope.projectId} ${scope.environment}`
  if (steps.length === 0) print(`nothing to change in ${where}`)
  else
    print(
      isDry ? `${steps.length} changes to ${where}, none made (--dry-run)` : `${steps.length} changes made to ${where}`,
    )
}

function lineOf(step: Step): string {
  const noun = { feature: 'Feature', product: 'Product', segment: 'Segment' }[step.object]
  if (!('entry' in step)) return `${step.does} ${noun} ${step.key}`
  const key = step.object === 'segment' ? step.entry.name : step.entry.key
  if (step.does === 'create') return `create ${noun} ${key}`
  const changes = step.changes.map(({ field, from, to }) => `${field} ${JSON.stringify(from)} → ${JSON.stringify(to)}`)
  return `update ${noun} ${key}: ${changes.join('; ')}`
}

async function contentOf(file: string): Promise<string> {
  if (file === '-') return text(process.stdin)
  return readFile(file, 'utf8').catch((error: unknown) => {
    throw new StartError(`${file} cannot be read: ${(error as Error).message}`) // of the file system
  })
}

/** The project that is named, or the only one there is. */
async function scopeOf(sql: Sql, input: Input): Promise<Scope> {
  const environment = oneOf(textOf(input, 'environment'), '--environment', ['test', 'live']) ?? 'live'
  return findProjectScope(sql, { projectId: textOf(input, 'project'), environment })
}
