export {
  createApp,
  deleteApp,
  getApp,
  listApps,
  lockApp,
  updateApp,
} from './apps.ts'
export {
  claimIdempotencyKey,
  forgetIdempotentAnswers,
  insertAudit,
  saveIdempotentAnswer,
} from './change-store.ts'
export { Directory } from './directory.ts'
export { type InstanceSecrets, openInstance } from './instance.ts'
export { looksLikePublishableKey, looksLikeSecretKey, mintPublishableKey, mintSecretKey } from './keys.ts'
export { Marks } from './marks.ts'
export { createFirstWorkspace } from './owner.ts'
export { createProject, deleteProject, getProject, listProjects, updateProject } from './projects.ts'
export {
  createPublishableKey,
  listPublishableKeys,
  revokePublishableKey,
} from './publishable-keys.ts'
export { touchCatalogue, touchTenancy } from './store.ts'
export type { App, AppScope, Environment, Platform, Project, PublishableKey, Scope, SecretKeyHolder } from './types.ts'
