import type { Log } from '../../events/index.ts'
import type { FeatureFact } from '../../experiences/index.ts'
import type { Scope } from '../../tenancy/index.ts'

/** What applying inputs stands on beside the transaction. */
export interface ApplyServices {
  /** Of the instance: from the commit of a deletion on nothing is appended for that customer. */
  tombstoneKey: Buffer
  log: Log
  /** What customers have access to, by Feature. Absent: expressions over Features are unknown. */
  features?: FeatureSource
}

/** Of customers, each in an app, by customer. */
export type FeatureSource = (
  scope: Scope,
  whose: readonly { customerId: string; appId: string }[],
) => Promise<ReadonlyMap<string, Record<string, FeatureFact>>>
