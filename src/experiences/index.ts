export { type Experience, type SavedDraft, selectExperiences as listExperiences } from './authoring/experience-store.ts'
export {
  createExperience,
  type ExperienceEdit,
  getDraft,
  getExperience,
  renameExperience,
  saveDraft,
} from './authoring/experiences.ts'
export { judgeDraft } from './authoring/judge.ts'
export type { DeclaredField, Plan, PlanOutputs, PlanSection, PlanStep } from './compile/plan.ts'
export { envelopeOf } from './compile/release.ts'
export type { IrFacts } from './ir/facts.ts'
export { type PublishedKey, type SigningKey, selectKeys as listKeys, selectPublishedKeys } from './keys/key-store.ts'
export { createKey, getKey, importKey, type KeyEdit, withdrawKey } from './keys/keys.ts'
export { type Publication, selectPublications as listPublications, selectRelease } from './publish/publication-store.ts'
export { activate, freeze, type PublishServices } from './publish/publish.ts'
export { activateKey } from './publish/resign.ts'
export { changeState, type StateVerb } from './publish/states.ts'
export { selectVersions as listVersions, type Version } from './publish/version-store.ts'
