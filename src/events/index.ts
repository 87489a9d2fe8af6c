export { type AppendResult, createLog, type EventLog, type LogOptions } from './append.ts'
export type { BatchReply, ItemError } from './batch-reply.ts'
export { isRecognised, type SystemEvent, type SystemEventGroup, systemEvent, systemEvents } from './catalogue.ts'
export { cleanJson } from './clean-json.ts'
export { applyCommand } from './command.ts'
export { inflateWhole } from './inflate.ts'
export { type LaneLag, laneLag } from './lag.ts'
export { type LanesOptions, runLanes } from './lanes.ts'
export { checkLogMeta } from './log-meta.ts'
export { echo, type Normalised, normalise, type Receipt } from './normalise.ts'
export { ensurePartitions } from './partitions.ts'
export { takeBatch } from './take-batch.ts'
export { parseTimestamp } from './timestamp.ts'
export type { SliceReport } from './turn.ts'
export {
  type Consumer,
  type EventOutcome,
  type EventPayload,
  type Json,
  type JsonObject,
  type KnownFields,
  type LaneEvent,
  type LoggedEvent,
  type NewEvent,
  type Origin,
  type Projection,
  StaleSlice,
  type Stream,
  type Warning,
} from './types.ts'
