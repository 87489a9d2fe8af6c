export {
  createApp,
  deleteApp,
  getApp,
  listApps,
  lockApp,
  updateApp,
} from './apps.ts'
export { type Allowance, attempt } from './attempts.ts'
export { type AuditRow, selectAudit as listAudit } from './audit-store.ts'
export {
  claimIdempotencyKey,
  eraseAnswers,
  findIdempotentAnswer,
  forgetIdempotentAnswers,
  insertAudit,
  type SavedAnswer,
  saveIdempotentAnswer,
} from './change-store.ts'
export { Directory } from './directory.ts'
export {
  type InstanceSecrets,
  openInstance,
  opensDatabase,
  opensInstance,
  resealInstance,
  sealingKeyOf,
} from './instance.ts'
export { acceptInvitation, invite, listInvitations, revokeInvitation } from './invitations.ts'
export { looksLikePublishableKey, looksLikeSecretKey, mintPublishableKey, mintSecretKey } from './keys.ts'
export { type Mail, queueMail, sendDueMails } from './mail.ts'
export { invitationMail } from './mail-texts.ts'
export { Marks } from './marks.ts'
export { hasRole } from './member-rules.ts'
export { changeRole, listMembers, removeMember } from './members.ts'
export { findProjectScope, note } from './operator.ts'
export {
  addSecretKey,
  addUser,
  operatorKeys,
  operatorUsers,
  operatorWorkspaces,
  setAccess,
  setPassword,
  signOut,
  verifyUser,
  withdrawSecretKey,
} from './operator-accounts.ts'
export { selectKeyFigures } from './operator-store.ts'
export { createFirstWorkspace } from './owner.ts'
export { createProject, deleteProject, getProject, listProjects, updateProject } from './projects.ts'
export {
  createPublishableKey,
  listPublishableKeys,
  revokePublishableKey,
} from './publishable-keys.ts'
export { createSecretKey, listSecretKeys, revokeSecretKey } from './secret-keys.ts'
export { endSession, findSession, forgetExpired } from './sessions.ts'
export { openSignIn, type SignIn } from './sign-in.ts'
export { hasWorkspaces, readSealedSecrets, touchCatalogue, touchTenancy } from './store.ts'
export type {
  App,
  AppScope,
  ClientRuntime,
  Environment,
  Invitation,
  Member,
  Platform,
  Project,
  PublishableKey,
  Scope,
  SecretKey,
  SecretKeyHolder,
  Session,
  User,
  Workspace,
} from './types.ts'
export { UsageTally } from './usage.ts'
export { selectUsage as listUsage, type UsageDay } from './usage-store.ts'
export { createWorkspace, getWorkspace, listWorkspaces, updateWorkspace } from './workspaces.ts'
