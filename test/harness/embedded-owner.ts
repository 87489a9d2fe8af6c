/**
 * A process that owns the embedded database of DATA_DIR `argv[2]`: tells `{ url, processId }` or `{ refusal }` in one line
 * of JSON, then lives until it is killed, or until its input ends, as it does with the test that started it.
 */
import { startEmbedded } from '../../src/db/embedded.ts'
import { silent } from './server.ts'

const tell = (what: object) => console.log(JSON.stringify(what))

try {
  await using database = await startEmbedded({ dataDir: process.argv[2] ?? '', log: silent })
  tell({ url: database.url, processId: database.processId })
  for await (const _ of process.stdin);
} catch (error) {
  tell({ refusal: (error as Error).message })
}
