import { once } from 'node:events'
import { readlinkSync } from 'node:fs'
import { setPriority } from 'node:os'
import { basename } from 'node:path'
import { parentPort, workerData } from 'node:worker_threads'
import type { Logger } from 'pino'
import { createProjection, createSegmentConsumer, type MembershipConsumer, runSegments } from './customers/index.ts'
import { Pool } from './db/pool.ts'
import { Catalogues, createStanding, ledgerSettings } from './entitlements/index.ts'
import { type Consumer, countEvents, createDiscovery, laneStats, runLanes } from './events/index.ts'
import { countExposures } from './experiences/index.ts'
import { featureSource } from './feature-facts.ts'
import {
  createInboxTurn,
  createJourneyConsumer,
  createSweepTurn,
  type FeatureSource,
  runJourneys,
} from './journeys/index.ts'
import { must } from './kernel/assert.ts'
import { systemClock as clock } from './kernel/clock.ts'
import { openLog } from './log.ts'
import { participantsOf } from './participants.ts'
import { createTokenIndex } from './purchases/index.ts'
import { Directory } from './tenancy/index.ts'

/** What the worker is started with: structured-clonable. */
export interface WorkerInput {
  url: string
  tombstoneKey: Uint8Array
  logLevel: string
  eventRetentionDays: number
  publicUrl: string
  /** Of webhooks' secrets. */
  sealingKey: Uint8Array
  webhooksToPrivate: boolean
}

/** The lane worker, in its own thread: one projection and the consumers in the order they see each slice. */
export async function runLaneWorker(): Promise<void> {
  const input = workerData as WorkerInput // given by worker.ts
  const { url, logLevel, eventRetentionDays: keptDays, publicUrl, webhooksToPrivate } = input
  const [tombstoneKey, sealingKey] = [Buffer.from(input.tombstoneKey), Buffer.from(input.sealingKey)]
  const parent = must(parentPort, 'the worker runs in a thread')
  yieldToIntake()
  const stop = new AbortController()
  const log = openLog({ level: logLevel, name: 'worker' })
  await using own = new AsyncDisposableStack()
  const services = { tombstoneKey, log, features: openFeatures(own, { url, log, tombstoneKey }) }
  const projection = createProjection({ tombstoneKey, participants: participantsOf(clock, services) })
  const told: MembershipConsumer[] = [createJourneyConsumer()]
  const consumers: Consumer[] = [
    countEvents,
    createDiscovery(),
    createSegmentConsumer(clock, told, log),
    createTokenIndex({ clock, baseUrls: [publicUrl] }),
    countExposures,
  ]
  const stats = laneStats(() => clock.now())
  const telling = setInterval(() => parent.postMessage(stats.read()), statsMs)

  const running = runLanes({ url, projection, consumers, clock, log, signal: stop.signal, observe: stats.observe })
  const steps = runSegments({ url, consumers: told, clock, log, keptDays, signal: stop.signal })
  const turns = [createInboxTurn({ clock, services }), createSweepTurn({ clock, services })]
  const journeys = runJourneys({ url, services, turns, sealingKey, webhooksToPrivate, signal: stop.signal })
  await once(parent, 'message')
  clearInterval(telling)
  stop.abort()
  await running
  await steps
  await journeys
  parent.close()
}

/** Reads of the ledger, opened when a journey first asks for them. */
function openFeatures(
  own: AsyncDisposableStack,
  { url, log, tombstoneKey }: { url: string; log: Logger; tombstoneKey: Buffer },
): FeatureSource {
  let opening: Promise<FeatureSource> | undefined
  const open = async () => {
    const pool = own.use(new Pool(url, { name: 'journeys read', max: 2 }))
    const directory = own.use(await Directory.open({ pool, url, clock, log }))
    const ledger = own.use(new Pool(url, { name: 'journeys access', max: 2, pipeline: true, settings: ledgerSettings }))
    return featureSource(pool, new Catalogues(pool, directory), createStanding({ pool: ledger, tombstoneKey, clock }))
  }
  return async (scope, whose) => {
    opening ??= open().catch((error: unknown) => {
      opening = undefined
      throw error
    })
    return (await opening)(scope, whose)
  }
}

/** How old the figures of `/metrics` may be. */
const statsMs = 1000

const niceness = 5

/**
 * Acknowledging comes first: where cores are short, this thread gets a third of what the API's gets, and what was
 * acknowledged waits in the log. Where they are not it makes no difference. Linux only, where threads have priorities.
 */
function yieldToIntake(): void {
  try {
    setPriority(Number(basename(readlinkSync('/proc/thread-self'))), niceness)
  } catch {
    // Fair shares are fine too.
  }
}
