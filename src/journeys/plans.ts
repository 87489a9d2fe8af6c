import type { Sql } from '../db/pool.ts'
import type { Scope } from '../tenancy/index.ts'
import { pinnedPlans } from './apply/pinned-plans.ts'
import type { PinnedPlan } from './plan.ts'
import { type NamedVersion, type PointerState, selectBuildsOf, selectLive } from './plans-store.ts'

/** A plan that new journeys in an app may begin with. */
export interface LivePlan {
  appId: string
  state: PointerState
  plan: PinnedPlan
}

/** What is live or paused, by Experience and app. */
export async function livePlans(sql: Sql, scope: Scope): Promise<LivePlan[]> {
  const pointers = await selectLive(sql, scope)
  const plans = await pinnedPlans(sql, scope, pointers)
  return pointers.flatMap(({ appId, state, buildId }) => {
    const plan = plans.get(buildId)
    return plan ? [{ appId, state, plan }] : []
  })
}

/** What a device names that it runs; undefined: it was never published in its app. */
export async function namedPlans(
  sql: Sql,
  scope: Scope,
  named: readonly NamedVersion[],
): Promise<(version: NamedVersion) => PinnedPlan | undefined> {
  const unique = new Map(named.map((one) => [keyOf(one), one]))
  const builds = unique.size === 0 ? [] : await selectBuildsOf(sql, scope, [...unique.values()])
  const plans = await pinnedPlans(sql, scope, builds)
  const byKey = new Map(builds.map((build) => [keyOf(build), plans.get(build.buildId)]))
  return (version) => byKey.get(keyOf(version))
}

function keyOf({ appId, experienceId, versionId }: NamedVersion): string {
  return JSON.stringify([appId, experienceId, versionId])
}

/** The section that a leg id names. */
export function sectionOfLeg({ sections }: PinnedPlan, legId: string): string | undefined {
  return Object.keys(sections).find((key) => sections[key]?.legId === legId)
}
