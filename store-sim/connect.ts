/**
 * `npm run store-sim:connect`: connects the test apps of a first run, or the app named by --app, to the simulator at
 * STORE_SIM_URL.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'

interface FirstRun {
  workspace_base_url: string
  secret_key: string
  apps?: { id: string; platform: string }[]
}

const { values } = parseArgs({
  options: {
    sim: { type: 'string', default: process.env.STORE_SIM_URL ?? 'http://127.0.0.1:4100' },
    workspace: { type: 'string' },
    key: { type: 'string' },
    app: { type: 'string', multiple: true },
    namespace: { type: 'string', default: process.env.NAMESPACE ?? 'service' },
    'data-dir': { type: 'string', default: process.env.DATA_DIR ?? './data' },
  },
})
const isNamed = values.workspace !== undefined && values.key !== undefined && values.app !== undefined
const firstRun = isNamed ? undefined : readFirstRun(join(values['data-dir'], 'first-run.json'))
const apps = values.app ?? firstRun?.apps?.filter(({ platform }) => platform !== 'web').map(({ id }) => id) ?? []
if (apps.length === 0) fail('no app to connect: name one with --app')
for (const app of apps) {
  const response = await fetch(`${values.sim}/sim/connect`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      workspace_base_url: values.workspace ?? firstRun?.workspace_base_url,
      secret_key: values.key ?? firstRun?.secret_key,
      app_id: app,
      namespace: values.namespace,
    }),
  }).catch((error: unknown) => fail(`no simulator at ${values.sim}: start it with npm run store-sim`, error))
  const text = await response.text()
  if (!response.ok) fail(`${app} was not connected: ${text}`)
  console.log(`${app} is connected: ${text}`)
}

function readFirstRun(file: string): FirstRun {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as FirstRun // its documented shape
  } catch (error) {
    return fail(`${file} cannot be read: start the service once, or give --workspace, --key and --app`, error)
  }
}

function fail(words: string, cause?: unknown): never {
  console.error(cause instanceof Error ? `${words} (${cause.message})` : words)
  process.exit(1)
}
