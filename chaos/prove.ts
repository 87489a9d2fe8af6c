import { setTimeout as sleep } from 'node:timers/promises'
import { scopeOf } from '../bench/store.ts'
import { type Finding, verifyLedger } from '../src/entitlements/index.ts'
import { laneLag } from '../src/events/index.ts'
import type { Stored, StoredEvent } from './check.ts'
import { Expectation } from './expectation.ts'
import { readAnswer, readRecord } from './record.ts'
import { featureId } from './send.ts'
import * as store from './store.ts'
import { type Turn, turnsOf } from './turns.ts'
import { allUp, type Load, type World } from './world.ts'

const pollMs = 100

/** Resolves when every process is up and nothing waits to be applied; gives whether that came in time. */
export async function settled(world: World, msMax: number): Promise<boolean> {
  const deadline = performance.now() + msMax
  await Promise.race([allUp(world), sleep(msMax, undefined, { ref: false })])
  while (performance.now() < deadline) {
    const lag = await laneLag(world.pool).catch(() => null)
    if (lag?.rows === 0 && lag.historical.rows === 0) return true
    await sleep(pollMs)
  }
  return false
}

/** What the records promise: the turns follow from the seed, the answers are on disk. */
export async function readExpectation(loads: Pick<Load, 'record' | 'clients'>[]): Promise<Expectation> {
  const expectation = new Expectation()
  for (const { record, clients } of loads) {
    const turns = new Map(clients.map((options) => [options.client, turnsOf(options)]))
    const open = new Map<number, { n: number; turn: Turn }>()
    for await (const { mark, client, turn: n, detail } of readRecord(record)) {
      const before = open.get(client)
      if (mark === '>' && before?.n !== n) {
        if (before) expectation.take(before.turn, null)
        const next = turns.get(client)?.next().value
        if (next) open.set(client, { n, turn: next })
      } else if (mark === '<' && before) {
        expectation.take(before.turn, readAnswer(detail))
        open.delete(client)
      }
    }
    for (const { turn } of open.values()) expectation.take(turn, null)
  }
  return expectation
}

export async function readStored({ pool, projectId }: World): Promise<Stored> {
  const scopeId = await scopeOf(pool, projectId)
  // Nobody else has had the time to, and plans without statistics take minutes.
  await pool.query('analyze')
  const events: StoredEvent[] = []
  for await (const event of store.readEvents(pool, scopeId)) events.push(event)
  const findings: string[] = []
  await verifyLedger(pool, { onFinding: (finding: Finding) => findings.push(JSON.stringify(finding)), scopeId })
  return {
    events,
    people: await store.readPeople(pool, scopeId),
    operations: await store.readOperations(pool, scopeId),
    accounts: await store.readAccounts(pool, scopeId, featureId),
    sharedPositions: await store.countSharedPositions(pool, scopeId),
    findings,
  }
}
