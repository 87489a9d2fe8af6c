export { createLog, type EventLog } from './append.ts'
export { systemEvent } from './catalogue.ts'
export { cleanJson } from './clean-json.ts'
export { applyCommand, applyCommands } from './command.ts'
export { type Filter, type FilterTest, propertyOf, testOfFilters } from './conditions/filter.ts'
export { type Test, testOf } from './conditions/operators.ts'
export { collector, fieldsOf, parseFilters, parseKey, parseOperator, type Report } from './conditions/parse-filter.ts'
export { type DeadEvent, listDeadEvents } from './dead-event-store.ts'
export { appendEmitted } from './emit.ts'
export { eraseEvents, eraseLog, type LogPlace } from './erase.ts'
export { repointEvents } from './erase-store.ts'
export { appendFacts, type Fact } from './facts.ts'
export type { Freshness } from './freshness.ts'
export { logGauges, stoppedLanes } from './gauges-store.ts'
export { type Happening, selectHistory, selectLanePosition, selectWholeSince } from './history-store.ts'
export { inflateWhole } from './inflate.ts'
export { createIntakeGuard } from './intake-guard.ts'
export { laneLag } from './lag.ts'
export { selectOldestWaiting } from './lag-store.ts'
export { type LaneStats, laneStats } from './lane-stats.ts'
export { laneSettings } from './lane-store.ts'
export { runLanes } from './lanes.ts'
export type { LogStats } from './log-counts.ts'
export { beginGeneration, checkLogMeta } from './log-meta.ts'
export { type Normalised, normalise } from './normalise.ts'
export { ensurePartitions } from './partitions.ts'
export { selectPerformers } from './performers-store.ts'
export * from './queries/index.ts'
export { replayDeadEvent } from './replay.ts'
export { forgetOldEvents } from './retention.ts'
export { takeBatch } from './take-batch.ts'
export { parseTimestamp } from './timestamp.ts'
export type { SliceReport } from './turn.ts'
export {
  type Consumer,
  type EventOutcome,
  type EventPayload,
  type Json,
  type JsonObject,
  type LaneEvent,
  type Log,
  type LoggedEvent,
  type Projection,
  SliceTooLarge,
  StaleSlice,
  type Warning,
} from './types.ts'
export { type EventWarning, listWarnings } from './warning-store.ts'
