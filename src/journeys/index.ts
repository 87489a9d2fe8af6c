export type { ApplyServices, FeatureSource } from './apply/services.ts'
export { createStart, type StartExperience } from './enrol/start.ts'
export { forgetOccurrences } from './forget.ts'
export { selectIntakeGauges } from './intake/inbox-store.ts'
export { createJourneyConsumer } from './intake/lane.ts'
export { tellEdits } from './intake/touch.ts'
export { createInboxTurn, createSweepTurn } from './intake/turn.ts'
export {
  advanceJourney,
  cancelJourney,
  getJourney,
  type JourneyEdit,
  pauseJourneysOf,
  resumeJourneysOf,
} from './manage/commands.ts'
export { type StartRecord, selectFunnel as funnelOf, selectStarts as listStarts } from './manage/count-store.ts'
export { holdJourneys, moveJourneys, resumeHeldJourneys, stopJourneys } from './manage/in-flight.ts'
export { dropQuarantined, releaseQuarantined } from './manage/quarantine.ts'
export { type QuarantineRecord, selectQuarantined as listQuarantined } from './manage/quarantine-store.ts'
export {
  type JourneyRecord,
  type LegRecord,
  selectJourneyRecords as listJourneys,
  selectLegs as listLegs,
  selectTransitions as listTransitions,
  type TransitionRecord,
} from './manage/read-store.ts'
export { findIntroOffer, type IntroOffer, type OfferQuestion } from './offers.ts'
export { createJourneyParticipant, journeyEraser } from './participant.ts'
export { journeySettings } from './store/journey-store.ts'
export { selectGauges as selectEngineGauges } from './store/quarantine-store.ts'
export { takeStarts } from './store/starts-store.ts'
export { fireTimers } from './timers/fire.ts'
export { runJourneys } from './timers/run.ts'
