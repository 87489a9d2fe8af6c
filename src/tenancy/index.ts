export type { AppScope, Environment, Platform, Scope } from './types.ts'
