import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { must } from '../../src/kernel/assert.ts'
import { playScenario } from '../../store-sim/scenarios/play-scenario.ts'
import { readScenarios } from '../../store-sim/scenarios/scenario.ts'
import { startService, type TestService } from '../harness/service.ts'
import { openSim } from './sim.ts'

/** Keeps the database while the one that works is away. */
const base = await startService({ ROLE: 'api' })
const sim = await openSim({ clock: 'real' })
let working: TestService | undefined = await base.another()
const { port } = new URL(working.url)
after(async () => {
  await working?.[Symbol.asyncDispose]()
  await sim[Symbol.asyncDispose]()
  await base[Symbol.asyncDispose]()
})

function connection() {
  const { url, secretKey } = must(working, 'it runs')
  return { workspaceBaseUrl: `${url}/v1`, secretKey, namespace: 'service' }
}

const theatre = {
  sim: sim.url,
  async stop() {
    await working?.[Symbol.asyncDispose]()
    working = undefined
  },
  /** At the same address: what the stores send has to find it again. */
  async start() {
    working = await base.another({ PORT: port })
    return connection()
  },
}

for (const scenario of readScenarios()) {
  test(`scenario ${scenario.name} goes as told, and nobody has more or less than was paid`, async () => {
    const { passed, why } = await playScenario({ ...theatre, service: connection() }, scenario)
    assert.ok(passed, why)
  })
}
