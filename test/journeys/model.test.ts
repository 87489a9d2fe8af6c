import assert from 'node:assert/strict'
import { rm } from 'node:fs/promises'
import { after, test } from 'node:test'
import { lineTo, openWorld } from '../end-to-end/world.ts'
import { device, server } from '../harness/a-draft.ts'
import fc from '../harness/random.ts'
import { temporaryFolder } from '../harness/server.ts'
import { startService } from '../harness/service.ts'
import { type RunningTurnpike, runTurnpike } from '../harness/turnpike.ts'
import { act } from './acts.ts'
import { checkAll } from './check-all.ts'
import { type Ground, Life } from './life.ts'
import { deviceDraft, type Published, serverDraft } from './stage.ts'

const service = await startService()
const node = await service.another({ ROLE: 'api' })
const world = await openWorld(service)
const folder = await temporaryFolder()

let started = 0
/** A worker of its own beside the one of the service, which dies without a word. */
function aWorker(): RunningTurnpike {
  const settings = { DATABASE_URL: service.databaseUrl, MASTER_KEY: Buffer.alloc(32, 7).toString('base64') }
  return runTurnpike({ dataDir: `${folder}/${++started}`, settings: { ...settings, ROLE: 'worker' } })
}
const workers = [aWorker(), aWorker()]
after(async () => {
  for (const worker of workers) await worker[Symbol.asyncDispose]()
  await node[Symbol.asyncDispose]()
  await service[Symbol.asyncDispose]()
  await rm(folder, { recursive: true })
})
await Promise.all(workers.map(({ url }) => url))

const api = { type: 'api' }
/** Waits, writes, says so and offers a leg. */
function longDraft(frequency: string, priority: number) {
  const draft = { ...serverDraft(api, { entry: { frequency: { type: frequency } } }), priority }
  const wait = { type: 'wait_for_event', eventName: 'paid', trust: 'any', timeoutMs: 3_600_000 }
  draft.graph.entry = 'wait'
  draft.graph.steps = [
    server('wait', wait, { matched: 'write', timeout: 'again' }),
    server('write', { type: 'set_properties', increment: { paid: 1 } }, { next: 'say' }),
    server('say', { type: 'emit_event', eventName: 'said' }, { next: 'again' }),
    device('again', { type: 'app_action', name: 'greet' }, { next: 'rest' }),
    server('rest', { type: 'delay', durationMs: 3_600_000 }, { next: null }),
  ]
  return draft
}
const drafts = [
  (priority: number) => ({ ...deviceDraft(), priority }),
  (priority: number) => longDraft('every_match', priority),
  (priority: number) => longDraft('one_time', priority),
]
const versions: Published[][] = []
for (const draft of drafts) versions.push([await world.publish(draft(1))])

const ground: Ground = {
  ...{ world, versions },
  draftOf: (of) => drafts[of]?.(1 + (++started % 900)) ?? {},
  async crash() {
    const worker = workers.shift()
    worker?.process.kill('SIGKILL')
    await worker?.ended
    workers.push(aWorker())
  },
}

async function check(life: Life): Promise<void> {
  await world.quiet()
  for (const ids of life.starts.values()) assert.ok(ids.size <= 1, '5: one key begins one journey')
  const scopeId = await world.project.scopeId()
  const [scope] = await service.pool.query<{ scopeId: number; workspaceId: string; projectId: string }>(
    `select s.id as "scopeId", p.workspace_id as "workspaceId", p.id as "projectId"
     from scope s
     join project p on p.id = s.project_id
     where s.id = $1`,
    [scopeId],
  )
  assert.ok(scope)
  await checkAll(service.pool, { ...scope, environment: 'test' }, life.deleted)
  await life.devices.checkAll()
}

test('whatever is published, rolled back, rotated, reported, started, merged, split and deleted at once, and whichever worker dies, the invariants hold', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.array(act, { minLength: 3, maxLength: 12 }), { minLength: 2, maxLength: 4 }),
      async (rounds) => {
        const life = new Life(ground, [lineTo(service), lineTo(node)])
        for (const round of rounds) {
          await Promise.all(round.map((one) => life.act(one)))
          await check(life)
        }
        await life.resumeAll()
        await check(life)
      },
    ),
    { numRuns: 6, interruptAfterTimeLimit: 90_000, markInterruptAsFailure: false, endOnFailure: true },
  )
})
