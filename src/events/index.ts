export { type AppendResult, createLog, type EventLog, type LogOptions } from './append.ts'
export type { BatchReply, ItemError } from './batch-reply.ts'
export { isRecognised, type SystemEvent, type SystemEventGroup, systemEvent, systemEvents } from './catalogue.ts'
export { inflateWhole } from './inflate.ts'
export { echo, type Normalised, normalise, type Receipt } from './normalise.ts'
export { ensurePartitions } from './partitions.ts'
export { takeBatch } from './take-batch.ts'
export { parseTimestamp } from './timestamp.ts'
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
