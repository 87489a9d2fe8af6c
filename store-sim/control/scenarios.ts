import { Type } from 'typebox'
import { bodyOf } from '../http/body.ts'
import type { Routes } from '../http/router.ts'
import { refuse } from '../refusal.ts'
import { playScenario } from '../scenarios/play-scenario.ts'
import { needsOwnService, readScenarios } from '../scenarios/scenario.ts'

const runShape = Type.Object({ name: Type.String() }, { additionalProperties: false })

/** The page's way to play a scenario: on the service that is connected, in a project made for it. */
export const scenarios: Routes = {
  'GET /sim/scenarios': () => ({
    body: {
      scenarios: readScenarios()
        .filter((one) => !needsOwnService(one))
        .map(({ name, says, store }) => ({ name, says, store })),
    },
  }),

  'POST /sim/scenarios': async (sim, request) => {
    const { name } = bodyOf(runShape, request)
    const scenario = readScenarios().find((one) => one.name === name)
    if (scenario === undefined) throw refuse('scenario_not_found', `there is no scenario ${name}`, 404)
    const connection = sim.world.apps.find((app) => app.connection !== null)?.connection
    if (connection == null) throw refuse('not_connected', 'connect a test app of the service first', 409)
    const { workspaceBaseUrl, secretKey, environmentHeader } = connection
    const namespace = environmentHeader.replace(/^x-(.+)-env$/, '$1')
    return { body: await playScenario({ sim: sim.url, service: { workspaceBaseUrl, secretKey, namespace } }, scenario) }
  },
}
