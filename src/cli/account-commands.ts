import { keyDaysDefault, keyDaysMax } from '../kernel/limits.ts'
import type { Command } from './command.ts'

const json = { json: { type: 'boolean' } } as const

/** People, what they may do, and the keys of their backends. */
export const accountCommands: Command[] = [
  {
    name: 'users list',
    takes: '[--json]',
    summary: 'people, newest first, and what they are in which workspace',
    options: json,
    run: async (input) => (await import('./users.ts')).listUsers(input),
  },
  {
    name: 'users create',
    takes: '<email> [--name NAME] [--workspace NAME] [--password-stdin]',
    summary: 'make a verified user, with a workspace of their own if you name it',
    details: 'Without --password-stdin the password is made up and printed once.',
    words: { min: 1, max: 1 },
    options: { name: { type: 'string' }, workspace: { type: 'string' }, 'password-stdin': { type: 'boolean' } },
    run: async (input) => (await import('./users.ts')).createUser(input),
  },
  {
    name: 'users verify',
    takes: '<email>',
    summary: 'take an e-mail address as verified',
    words: { min: 1, max: 1 },
    run: async (input) => (await import('./users.ts')).verifyEmail(input),
  },
  {
    name: 'users set-password',
    takes: '<email> [--password-stdin]',
    summary: 'give a user a new password and end all sessions',
    details: 'Without --password-stdin the password is made up and printed once.',
    words: { min: 1, max: 1 },
    options: { 'password-stdin': { type: 'boolean' } },
    run: async (input) => (await import('./users.ts')).changePassword(input),
  },
  {
    name: 'users sign-out',
    takes: '<email>',
    summary: 'end all sessions of a user',
    words: { min: 1, max: 1 },
    run: async (input) => (await import('./users.ts')).endSessions(input),
  },
  {
    name: 'keys list',
    takes: '[--workspace ID] [--json]',
    summary: 'secret keys, newest first, revoked ones too',
    options: { workspace: { type: 'string' }, ...json },
    run: async (input) => (await import('./keys.ts')).listKeys(input),
  },
  {
    name: 'keys create',
    takes: '<workspace id> [--name NAME] [--expires-in-days N | --no-expiry]',
    summary: 'make a secret key and print it, once',
    details: `--expires-in-days is 1 to ${keyDaysMax}, ${keyDaysDefault} unless said.`,
    words: { min: 1, max: 1 },
    options: { name: { type: 'string' }, 'expires-in-days': { type: 'string' }, 'no-expiry': { type: 'boolean' } },
    run: async (input) => (await import('./keys.ts')).createKey(input),
  },
  {
    name: 'keys revoke',
    takes: '<key id>',
    summary: 'refuse a secret key from now on, within a second on every process',
    words: { min: 1, max: 1 },
    run: async (input) => (await import('./keys.ts')).revokeKey(input),
  },
  {
    name: 'workspaces list',
    takes: '[--json]',
    summary: 'workspaces, newest first, with their access',
    options: json,
    run: async (input) => (await import('./workspaces.ts')).listWorkspaces(input),
  },
  {
    name: 'workspaces access',
    takes: '<workspace id> active|api_disabled|payment_required',
    summary: 'let a workspace use the Workspace API, or answer it with 402',
    details: 'Apps go on working; secret keys and sessions get the 402.',
    words: { min: 2, max: 2 },
    run: async (input) => (await import('./workspaces.ts')).setWorkspaceAccess(input),
  },
]
