import { LRUCache } from 'lru-cache'
import { type ServingSegment, servingSegments } from '../../customers/index.ts'
import type { Pool } from '../../db/pool.ts'
import { deliveredReleaseBytesMax, pinnedStampsMax, releaseKeysMax } from '../../kernel/limits.ts'
import type { WireNames } from '../../kernel/wire-names.ts'
import type { Directory, Scope } from '../../tenancy/index.ts'
import { selectAllExperiments } from '../experiments/experiment-store.ts'
import type { Experiment } from '../experiments/types.ts'
import {
  selectCurrent,
  selectExperienceIds,
  selectLegs,
  selectReleases,
  selectRevision,
  selectStamp,
} from './delivery-store.ts'
import { type DeliveredRelease, deliver } from './release.ts'
import { type Current, currentOf, type Stamp, stampOf } from './stamp.ts'

/** The newest stamp of a version in an app, to which a journey is pinned. */
export interface Pin {
  appId: string
  experienceRowId: number
  versionNumber: number
}

/** What one scope publishes, as of one revision of its catalogue. Releases and older versions come in when they are needed. */
export interface Delivery {
  revision: bigint
  experiences: { rowId: number; id: string }[]
  /** By app. */
  current: ReadonlyMap<string, Current[]>
  /** Those that any of it names, by id; without one that serves: not there. */
  segments: ReadonlyMap<string, ServingSegment>
  /** By id, as drafts and legs name them. */
  experiments: ReadonlyMap<string, Experiment>
  /** Ids of segments that what was read so far names; another set once there are more. */
  readonly named: ReadonlySet<string>
  /** Undefined: not read yet; null: there is none that verifies. */
  release: (appId: string, sha256: string) => DeliveredRelease | null | undefined
  /** Undefined: not read yet; null: it was never published there. */
  pinned: (pin: Pin) => Stamp | null | undefined
  /** Reads what was found to be missing. */
  fetch: (missing: { releases: { appId: string; sha256: string }[]; pins: Pin[] }) => Promise<void>
}

export interface Deliveries {
  /** At least as new as what this process has been told of, and as `atLeast`. */
  get: (scope: Scope, atLeast?: bigint) => Promise<Delivery>
}

/** Keeps what is published of each scope in memory, read again when its catalogue has moved. */
export function createDeliveries(options: { pool: Pool; directory: Directory; names: WireNames }): Deliveries {
  const byScope = new Map<number, Delivery>()
  const loading = new Map<number, Promise<Delivery>>()
  const releases: Releases = new LRUCache({
    maxSize: deliveredReleaseBytesMax,
    sizeCalculation: ({ release }) => 1000 + (release?.json.length ?? 0),
  })

  async function reload(scope: Scope): Promise<Delivery> {
    const delivery = await load(options, scope, releases)
    const held = byScope.get(scope.scopeId)
    if (held && held.revision > delivery.revision) return held
    byScope.set(scope.scopeId, delivery)
    return delivery
  }

  return {
    async get(scope, atLeast = 0n) {
      const { scopeId } = scope
      const known = options.directory.catalogueRevision(scopeId)
      const isNewEnough = ({ revision }: Delivery) => revision >= known && revision >= atLeast
      const held = byScope.get(scopeId)
      if (held && isNewEnough(held)) return held
      const underWay = await loading.get(scopeId)
      if (underWay && isNewEnough(underWay)) return underWay
      // It began before what is asked for; whoever came first begins anew for all.
      const next = loading.get(scopeId) ?? reload(scope).finally(() => loading.delete(scopeId))
      loading.set(scopeId, next)
      return next
    },
  }
}

/** Of all scopes and revisions: what nobody asks for any more makes room. */
type Releases = LRUCache<string, { release: DeliveredRelease | null }>

async function load(
  { pool, names }: { pool: Pool; names: WireNames },
  scope: Scope,
  releases: Releases,
): Promise<Delivery> {
  const { revision, experiences, rows, legs, segments, experiments } = await pool.transaction(async (tx) => {
    await tx.query('set transaction isolation level repeatable read read only')
    const current = await selectCurrent(tx, scope)
    return {
      revision: await selectRevision(tx, scope),
      experiences: await selectExperienceIds(tx, scope),
      rows: current,
      legs: await selectLegs(tx, scope, current),
      segments: await servingSegments(tx, scope),
      experiments: await selectAllExperiments(tx, scope),
    }
  })
  const byStamp = Map.groupBy(legs, (leg) => `${leg.app_id} ${leg.seq}`)
  const current = rows.map((row) => currentOf(row, byStamp.get(`${row.app_id} ${row.seq}`) ?? []))
  const audiences = experiments.flatMap(({ audienceSegmentId }) => audienceSegmentId ?? [])
  let named: ReadonlySet<string> = new Set([...current.flatMap((one) => [...one.segments]), ...audiences])
  const pins = new LRUCache<string, { stamp: Stamp | null }>({ max: pinnedStampsMax })
  const underWay = new Map<string, Promise<void>>()
  // A text that is put together anew is hashed anew, at every look-up.
  const keys = new LRUCache<string, { appId: string; key: string }>({ max: releaseKeysMax })
  // A signature that counts at one revision may not at the next.
  const releaseKey = (appId: string, sha256: string) => {
    const known = keys.get(sha256)
    if (known?.appId === appId) return known.key
    const key = `${scope.scopeId} ${revision} ${appId} ${sha256}`
    keys.set(sha256, { appId, key })
    return key
  }

  async function readReleases(appId: string, sha256s: string[]): Promise<void> {
    const found = Map.groupBy(await selectReleases(pool, scope, { appId, sha256s }), (row) => row.sha256)
    for (const sha256 of sha256s) {
      releases.set(releaseKey(appId, sha256), { release: deliver(names, appId, found.get(sha256) ?? []) ?? null })
    }
  }

  async function readPin(pin: Pin): Promise<void> {
    const row = await selectStamp(pool, scope, pin)
    const stamp = row ? stampOf(row, await selectLegs(pool, scope, [row])) : null
    named = new Set([...named, ...(stamp?.segments ?? [])])
    pins.set(pinKey(pin), { stamp })
  }

  /** After a publication many ask for the same at once: it is read once. */
  function once(key: string, read: () => Promise<void>): Promise<void> {
    const next = underWay.get(key) ?? read().finally(() => underWay.delete(key))
    underWay.set(key, next)
    return next
  }

  return {
    experiments: new Map(experiments.map((one) => [one.publicId, one])),
    ...{ revision, experiences, segments, current: Map.groupBy(current, ({ appId }) => appId) },
    get named() {
      return named
    },
    release: (appId, sha256) => releases.get(releaseKey(appId, sha256))?.release,
    pinned: (pin) => pins.get(pinKey(pin))?.stamp,
    async fetch(missing) {
      const byApp = [...Map.groupBy(missing.releases, (one) => one.appId)]
      await Promise.all([
        ...byApp.map(([appId, wanted]) => {
          const sha256s = [...new Set(wanted.map(({ sha256 }) => sha256))].toSorted()
          return once(`${appId} ${sha256s.join(' ')}`, () => readReleases(appId, sha256s))
        }),
        ...missing.pins.map((pin) => once(pinKey(pin), () => readPin(pin))),
      ])
    },
  }
}

function pinKey({ appId, experienceRowId, versionNumber }: Pin): string {
  return `${appId} ${experienceRowId} ${versionNumber}`
}
