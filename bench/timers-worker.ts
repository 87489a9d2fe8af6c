import { isRetryable, Pool } from '../src/db/pool.ts'
import { fireTimers, journeySettings } from '../src/journeys/index.ts'

/** Takes due timers until there are none. */
const [, , url = '', now = ''] = process.argv
const silent = { warn() {}, error() {} }
await using pool = new Pool(url, { name: 'bench', max: 1, settings: journeySettings })
const services = { tombstoneKey: Buffer.alloc(32), log: silent }
for (let left = true; left; ) {
  try {
    left = (await fireTimers({ pool, services, now: Number(now) })) > 0
  } catch (error) {
    if (!isRetryable(error)) throw error
  }
}
