export type Environment = 'test' | 'live'
export type Platform = 'ios' | 'android' | 'web'
export type WorkspaceAccess = 'active' | 'api_disabled' | 'payment_required'

/** Whose data a call is about: one environment of one project. Every store function takes it right after the transaction. */
export interface Scope {
  /** The short number of (project, environment); also the number of its lane. */
  scopeId: number
  workspaceId: string
  projectId: string
  environment: Environment
}

/** The scope of a publishable key: it also names one app and thereby one platform. */
export interface AppScope extends Scope {
  keyId: string
  appId: string
  appName: string
  platform: Platform
}

/** Who calls the Workspace API with a secret key. */
export interface SecretKeyHolder {
  keyId: string
  workspaceId: string
  access: WorkspaceAccess
}
