import type { ErrorCode } from '../kernel/errors.ts'
import type { Role } from './types.ts'

export type Verdict = { allowed: true } | { allowed: false; code: ErrorCode; message?: string }

const allowed: Verdict = { allowed: true }
const ownersOnly: Verdict = {
  allowed: false,
  code: 'workspace_admin_required',
  message: 'Only an owner of the workspace may do this to an owner.',
}
const lastOwner: Verdict = {
  allowed: false,
  code: 'conflict',
  message: 'A workspace keeps one owner: make somebody else an owner first.',
}

/** Whether somebody of this role has what `needed` needs. */
export function hasRole(role: Role, needed: Exclude<Role, 'owner'>): boolean {
  return needed === 'member' || role !== 'member'
}

/** May an actor give somebody a role? `from` null: the person joins. Nobody gives what they don't have. */
export function decideRole(change: { actor: Role; from: Role | null; to: Role; owners: number }): Verdict {
  const { actor, from, to, owners } = change
  if (actor === 'member') return { allowed: false, code: 'workspace_admin_required' }
  if (actor !== 'owner' && (from === 'owner' || to === 'owner')) return ownersOnly
  if (from === 'owner' && to !== 'owner' && owners <= 1) return lastOwner
  return allowed
}

/** May an actor remove a member? Everybody may leave but the last owner. */
export function decideRemoval(removal: { actor: Role; member: Role; self: boolean; owners: number }): Verdict {
  const { actor, member, self, owners } = removal
  if (!self && actor === 'member') return { allowed: false, code: 'workspace_admin_required' }
  if (!self && actor !== 'owner' && member === 'owner') return ownersOnly
  if (member === 'owner' && owners <= 1) return lastOwner
  return allowed
}
