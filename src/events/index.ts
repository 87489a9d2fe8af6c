export { createLog, type EventLog } from './append.ts'
export { cleanJson } from './clean-json.ts'
export { applyCommand } from './command.ts'
export { type Freshness, freshness } from './freshness.ts'
export { appendFacts, type Fact } from './facts.ts'
export { inflateWhole } from './inflate.ts'
export { laneLag } from './lag.ts'
export { runLanes } from './lanes.ts'
export { checkLogMeta } from './log-meta.ts'
export { type Normalised, normalise } from './normalise.ts'
export { ensurePartitions } from './partitions.ts'
export { takeBatch } from './take-batch.ts'
export type { SliceReport } from './turn.ts'
export {
  type Consumer,
  type EventOutcome,
  type EventPayload,
  type Json,
  type JsonObject,
  type LaneEvent,
  type LoggedEvent,
  type Projection,
  StaleSlice,
  type Warning,
} from './types.ts'
