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
const sim = await startStoreSim({
  port: Number(values.port),
  dataDir: values['data-dir'],
  ...(values.seed === undefined ? {} : { seed: values.seed }),
})
console.log(`both stores are open: ${sim.url}`)

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
  process.once(signal, () => void sim[Symbol.asyncDispose]().then(() => process.exit(0)))
