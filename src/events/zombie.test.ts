import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { testDatabase } from '../../test/harness/database.ts'
import { testScope } from '../../test/harness/lane.ts'
import { createTally, effects, runTally, tallied } from '../../test/harness/tally.ts'
import { must } from '../kernel/assert.ts'
import { systemClock } from '../kernel/clock.ts'
import { createLog } from './append.ts'
import { checkLogMeta } from './log-meta.ts'
import { normalise } from './normalise.ts'
import { ensurePartitions } from './partitions.ts'

const script = join(import.meta.dirname, '../../test/harness/paused-lane.ts')

describe('a worker process that was stopped in a slice, until its lease had ended and another had taken the lane', {
  concurrency: true,
}, () => {
  for (const [where, when] of [
    ['load', 'before it wrote'],
    ['write', 'in its transaction'],
  ] as const) {
    test(`writes nothing when it wakes up: ${when}`, async () => {
      await using database = await testDatabase()
      const { pool, url } = database
      await ensurePartitions(pool)
      await checkLogMeta(pool)
      await createTally(pool)
      const scope = await testScope(pool)
      await using log = createLog({ url, tombstoneKey: Buffer.from('key'), clock: systemClock })
      const append = async (count: number) => {
        for (let n = 0; n < count; n++) {
          const judged = normalise(
            { event: 'e', distinct_id: 'u1', uuid: randomUUID(), value: 1 },
            { receivedAt: systemClock.now(), trust: 'device' },
          )
          assert.equal(judged.kind, 'event')
          await log.append({ scopeId: scope.scopeId, appId: null }, judged.event)
        }
      }
      await append(5)
      const zombie = spawn(process.execPath, [script, url, where], { stdio: ['pipe', 'pipe', 'inherit'] })
      const ended = once(zombie, 'exit')
      try {
        await once(zombie.stdout, 'data')
        zombie.kill('SIGSTOP')
        await append(3)
        {
          await using other = runTally(url)
          await other.taken(8)
        }
        zombie.kill('SIGCONT')
        zombie.stdin.write('go on\n')
        await append(2)
        while ((await pool.query('select 1 from event')).length < 10);
      } finally {
        zombie.kill('SIGCONT')
        zombie.kill('SIGTERM')
        await ended
      }
      assert.equal((await effects(pool, scope)).length, 10)
      assert.deepEqual(await tallied(pool, scope), { u1: [10, 10] })
      const [lane] = await pool.query<{ pos: bigint }>('select pos from lane where id = $1', [scope.scopeId])
      assert.equal(must(lane, 'the lane').pos, 10n)
    })
  }
})
