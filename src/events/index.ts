export { isRecognised, type SystemEvent, type SystemEventGroup, systemEvent, systemEvents } from './catalogue.ts'
export { inflateWhole } from './inflate.ts'
export { echo, type Normalised, normalise, type Receipt } from './normalise.ts'
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
  type Projection,
  StaleSlice,
  type Warning,
} from './types.ts'
