/**
 * A process that owns the embedded database of DATA_DIR `argv[2]`: tells `{ url, processId }` or `{ refusal }` in one line
 * of JSON, then lives until it is killed, or stops cleanly at SIGTERM.
 */
import { startEmbedded } from '../../src/db/embedded.ts'

const silent = { info() {}, warn() {}, error() {} }
const tell = (what: object) => console.log(JSON.stringify(what))

try {
  const database = await startEmbedded({ dataDir: process.argv[2] ?? '', log: silent })
  const alive = setInterval(() => {}, 60_000)
  process.once('SIGTERM', () => {
    clearInterval(alive)
    void database[Symbol.asyncDispose]()
  })
  tell({ url: database.url, processId: database.processId })
} catch (error) {
  tell({ refusal: (error as Error).message })
}
