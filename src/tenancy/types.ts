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

/** A member reads and edits catalogue and customers; an admin also keys, credentials, members and deletions; an owner all. */
export type Role = 'owner' | 'admin' | 'member'

/** A person, as their session shows them. */
export interface User {
  id: string
  email: string
  name: string
  emailVerified: boolean
  createdAt: Date
}

/** Who calls with a session token, and what they are in the workspace they named. */
export interface Session {
  id: string
  expiresAt: Date
  user: User
  /** Null: no workspace was named, there is none of that id, or the user is no member of it. */
  membership: { workspaceId: string; role: Role; access: WorkspaceAccess } | null
}

export interface Workspace {
  id: string
  name: string
  slug: string
  logo: string | null
  createdAt: Date
}

export interface Member {
  userId: string
  email: string
  name: string
  role: Role
  createdAt: Date
}

export interface Invitation {
  id: string
  workspaceId: string
  email: string
  role: Role
  createdAt: Date
  expiresAt: Date
}

/** A workspace's secret key without the secret. */
export interface SecretKey {
  id: string
  name: string | null
  createdByUserId: string | null
  createdAt: Date
  expiresAt: Date | null
  lastUsedAt: Date | null
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

export interface Project extends ProjectSettings {
  id: string
  workspaceId: string
  name: string
  createdAt: Date
}

export interface ProjectSettings {
  /** Whether clients know the entry condition `always`; null: as the namespace says. */
  deliverAlways: boolean | null
  /** Null: nothing that has screens can be published. */
  clientRuntime: ClientRuntime | null
}

/** What the oldest build in the field can run: the service cannot ask a device. This very JSON is stored. */
export interface ClientRuntime {
  minimum_sdk_version: string
  runtime_revision: string
  luau: { revision: string; bytecode_versions: number[] }
  scene_format: { major: number; minor: number }
  timezone_data: { format: 'iana-tzdb'; revision: string; sha256: string }
  capabilities: string[]
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
