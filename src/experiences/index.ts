export { announced } from './announce/announce.ts'
export { sendAnnouncements } from './announce/send.ts'
export { fileAt, uploadTypes } from './artefacts/addresses.ts'
export { forgetBrokenUploads } from './artefacts/artefact-store.ts'
export { keep as keepArtefact, openArtefact, receive as receiveArtefact, type Upload } from './artefacts/artefacts.ts'
export { copyExperience } from './authoring/copy.ts'
export { type Experience, type SavedDraft, selectExperiences as listExperiences } from './authoring/experience-store.ts'
export {
  createExperience,
  getDraft,
  getExperience,
  renameExperience,
  saveDraft,
} from './authoring/experiences.ts'
export { judgeDraft } from './authoring/judge.ts'
export type { Settings } from './authoring/load-known.ts'
export { selectSegmentUses as usesOfSegment } from './authoring/segment-uses-store.ts'
export { legIdOf } from './compile/leg-id.ts'
export type { DeclaredField, Plan, PlanFields, PlanSection, PlanStep } from './compile/plan.ts'
export { envelopeOf } from './compile/release.ts'
export { createDeliveries, type Deliveries, type Delivery, type Pin } from './deliver/delivery.ts'
export type { DeliveredRelease } from './deliver/release.ts'
export { type Current, type LegRelease, releaseFor, type Stamp } from './deliver/stamp.ts'
export {
  selectEndpoints as listEndpoints,
  type WebhookEndpoint,
} from './endpoints/endpoint-store.ts'
export {
  createEndpoint,
  deleteEndpoint,
  editEndpoint,
  getEndpoint,
  openTarget,
  rotateSecret,
} from './endpoints/endpoints.ts'
export { type PostResult, post } from './endpoints/post.ts'
export { assign, peekAssignments } from './experiments/assign.ts'
export { countExposures } from './experiments/consumer.ts'
export { type Decision, decide as decideVariant } from './experiments/decide.ts'
export { selectExperimentPage as listExperiments } from './experiments/experiment-store.ts'
export {
  createExperiment,
  type ExperimentEdit,
  getExperiment,
  listAssignments,
  updateExperiment,
} from './experiments/experiments.ts'
export { recordExposures, type SeenVariant } from './experiments/expose.ts'
export { holdOut } from './experiments/holdout.ts'
export { beginPhase, changeExperiment, concludeExperiment, type ExperimentVerb } from './experiments/lifecycle.ts'
export { experimentEraser, experimentParticipant } from './experiments/participant.ts'
export { resultsOf } from './experiments/results.ts'
export type { Assignment, Experiment, Terms } from './experiments/types.ts'
export { evaluate, passes } from './ir/evaluate.ts'
export type { EventFact, FeatureFact, IrFacts } from './ir/facts.ts'
export { nodesOf, readsClock } from './ir/grammar.ts'
export { type PublishedKey, type SigningKey, selectKeys as listKeys, selectPublishedKeys } from './keys/key-store.ts'
export { createKey, getKey, importKey, type KeyEdit, withdrawKey } from './keys/keys.ts'
export {
  type Build,
  selectBuild as findBuild,
  selectBuildLegs as listBuildLegs,
  selectBuilds as listBuilds,
} from './publish/build-store.ts'
export {
  type Publication,
  selectCurrentPublications as listCurrentPublications,
  selectPublications as listPublications,
} from './publish/publication-store.ts'
export { activate, build, freeze, type PublishServices } from './publish/publish.ts'
export { selectRelease } from './publish/release-store.ts'
export { activateKey } from './publish/resign.ts'
export type { ReleaseCheck } from './publish/self-check.ts'
export { changeState, type StateVerb } from './publish/states.ts'
export type { Trial, TryProfiles } from './publish/trial.ts'
export {
  selectLatestVersions,
  selectVersion as findVersion,
  selectVersions as listVersions,
  type Version,
} from './publish/version-store.ts'
