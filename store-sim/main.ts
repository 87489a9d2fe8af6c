/** `npm run store-sim`: README.md says what it is for. */
import { parseArgs } from 'node:util'
import { startStoreSim } from './start.ts'

const { values } = parseArgs({
  options: {
    port: { type: 'string', default: '4100' },
    seed: { type: 'string' },
    'data-dir': { type: 'string', default: process.env.DATA_DIR ?? './data' },
  },
})
const port = Number(values.port)
if (!Number.isInteger(port) || port < 0 || port > 65_535) {
  console.error('--port is a number from 0 to 65535')
  process.exit(1)
}
const sim = await startStoreSim({
  port,
  dataDir: values['data-dir'],
  ...(values.seed === undefined ? {} : { seed: values.seed }),
})
console.log(`both stores are open: ${sim.url}`)

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
  process.once(signal, () => void sim[Symbol.asyncDispose]().then(() => process.exit(0)))
