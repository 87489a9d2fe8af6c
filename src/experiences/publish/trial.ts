import type { WireNames } from '../../kernel/wire-names.ts'
import type { App, Environment } from '../../tenancy/index.ts'
import type { Plan } from '../compile/plan.ts'
import type { Descriptor } from '../compile/release.ts'
import type { Delivery } from '../deliver/delivery.ts'
import type { LegRow, PointerRow } from '../deliver/delivery-store.ts'
import { type DeliveredRelease, deliver } from '../deliver/release.ts'
import { type Current, currentOf } from '../deliver/stamp.ts'
import type { ReleaseCheck } from './self-check.ts'

/** A publication that nobody sees yet, as profiles would deliver it alone. */
export interface Trial {
  app: { appId: string; platform: App['platform'] }
  environment: Environment
  delivery: Delivery
  current: Current
  plan: Plan
  /** Those that verify. */
  releases: DeliveredRelease[]
  /** One of each of those that deliver the same. */
  locales: string[]
  /** What clients would refuse of one of its releases. */
  check: ReleaseCheck
}

/** What clients would refuse of the profiles that it makes, in words; undefined: nothing. */
export type TryProfiles = (trial: Trial) => string | undefined

export function trialOf(
  names: WireNames,
  {
    app,
    environment,
    check,
    row,
    signed,
    key,
  }: Pick<Trial, 'environment' | 'check'> & {
    app: Pick<App, 'id' | 'platform'>
    row: PointerRow
    signed: readonly (Descriptor & { signature: Buffer })[]
    key: { keyId: string; publicKey: Buffer }
  },
): Trial {
  const legs = signed.flatMap(({ legId, locales, sha256, bytes }) =>
    locales.map((locale): LegRow => {
      return { app_id: app.id, seq: row.seq, leg_id: legId, locale, descriptor_sha256: sha256, size: bytes.length }
    }),
  )
  const current = currentOf(row, legs)
  const releases = new Map(
    signed.map(({ sha256, bytes: descriptor, signature }) => {
      const signedBy = { key_id: key.keyId, public_key: key.publicKey, signature }
      return [sha256, deliver(names, app.id, [{ sha256, descriptor, ...signedBy }]) ?? null]
    }),
  )
  const delivery: Delivery = {
    revision: 0n,
    experiences: [{ rowId: current.experienceRowId, id: current.experienceId }],
    current: new Map([[app.id, [current]]]),
    segments: new Map([...current.segments].map((id, n) => [id, { segmentId: n, versionId: n }])),
    experiments: new Map(),
    named: current.segments,
    release: (_appId, sha256) => releases.get(sha256),
    pinned: () => current,
    fetch: async () => {},
  }
  return {
    ...{ app: { appId: app.id, platform: app.platform }, environment, delivery, current, check },
    plan: JSON.parse(row.plan) as Plan, // it was written by the compiler
    releases: [...releases.values()].flatMap((release) => release ?? []),
    locales: differing(legs),
  }
}

function differing(legs: readonly LegRow[]): string[] {
  const byLocale = Map.groupBy(legs, ({ locale }) => locale)
  const kinds = Map.groupBy(byLocale, ([, own]) =>
    own
      .map((leg) => leg.descriptor_sha256)
      .toSorted()
      .join(' '),
  )
  return [...kinds.values()].flatMap(([first]) => first?.[0] ?? [])
}
