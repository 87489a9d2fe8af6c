export type Environment = 'test' | 'live'
export type Platform = 'ios' | 'android' | 'web'

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
  appId: string
  platform: Platform
}
