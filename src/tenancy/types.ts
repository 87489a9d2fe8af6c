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

/** One platform of a project. */
export interface App {
  id: string
  projectId: string
  platform: Platform
  name: string
  /** How the App Store knows it. */
  bundleId: string | null
  /** How Google Play knows it. */
  packageName: string | null
  /** The UUID from which the app derives the account tokens of its customers. Made with the app, never changes. */
  accountTokenNamespace: string
  createdAt: Date
  /** When an app of this platform last fetched a profile in the environment asked about. */
  lastConnectedAt: Date | null
}

export interface Project {
  id: string
  workspaceId: string
  name: string
  createdAt: Date
}

/** Selects one app and one environment on the App API. No secret: apps carry it. */
export interface PublishableKey {
  id: string
  appId: string
  environment: Environment
  key: string
  createdAt: Date
  revokedAt: Date | null
  lastUsedAt: Date | null
}
