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
export { type PublishedKey, type SigningKey, selectKeys as listKeys, selectPublishedKeys } from './keys/key-store.ts'
export { activateKey, createKey, getKey, importKey, type KeyEdit, withdrawKey } from './keys/keys.ts'
