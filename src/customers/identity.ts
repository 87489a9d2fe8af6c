import type { Json } from '../events/index.ts'
import { customerIdCharsMax, distinctIdsMax } from '../kernel/limits.ts'
import { codePoints, isStorable } from '../kernel/text.ts'

/** What is known of the customer behind one of the two ids of an identify. */
export interface Party {
  customerId: string
  identified: boolean
  /** How many distinct ids name it. */
  aliasCount: number
}

export interface MergeQuestion {
  /** As the client sent it, anything. */
  sourceId: Json
  targetId: string
  /** Null: the id names nobody yet. */
  source: Party | null
  target: Party | null
  sourceDeleted: boolean
  /** An operator says that both are one person: identified customers join too, if both exist. */
  force?: boolean
}

export type MergeRefusal =
  | 'same_id'
  | 'illegal_id'
  | 'source_deleted'
  | 'source_missing'
  | 'source_identified'
  | 'id_cap'

/** `identifies`: the target is identified from here on, refused or not. */
export type MergeRuling =
  | { kind: 'refused'; reason: MergeRefusal; identifies: boolean }
  | { kind: 'same'; identifies: true }
  | { kind: 'attach_source' | 'attach_target' | 'birth' | 'join'; identifies: true }

/**
 * May the customer of `sourceId` become one with the customer of `targetId`? The order of the rules is part of the
 * contract: the first that holds gives the reason.
 */
export function ruleMerge({
  sourceId,
  targetId,
  source,
  target,
  sourceDeleted,
  force = false,
}: MergeQuestion): MergeRuling {
  if (sourceId === targetId) return { kind: 'refused', reason: 'same_id', identifies: false }
  if (!namesOnePerson(sourceId) || !namesOnePerson(targetId)) {
    return { kind: 'refused', reason: 'illegal_id', identifies: false }
  }
  if (source !== null && source.customerId === target?.customerId) return { kind: 'same', identifies: true }
  if (sourceDeleted) return { kind: 'refused', reason: 'source_deleted', identifies: true }
  if (force && source === null) return { kind: 'refused', reason: 'source_missing', identifies: true }
  // Also for a target never seen: else the next login on a shared phone would inherit the last one's purchases.
  if (source?.identified && !force) return { kind: 'refused', reason: 'source_identified', identifies: true }
  if ((source?.aliasCount ?? 1) + (target?.aliasCount ?? 1) > distinctIdsMax) {
    return { kind: 'refused', reason: 'id_cap', identifies: true }
  }
  if (source === null) return { kind: target === null ? 'birth' : 'attach_source', identifies: true }
  return { kind: target === null ? 'attach_target' : 'join', identifies: true }
}

/** Compared in lower case, trimmed, without one pair of quotes. They name a class of users, never one of them. */
const classNames = new Set([
  '',
  'anonymous',
  'guest',
  'distinctid',
  'distinct_id',
  'id',
  'not_authenticated',
  'email',
  'undefined',
  'null',
  'nan',
  'none',
  'true',
  'false',
  '0',
  '[object object]',
  'anonymous-user',
  'backend',
  'system',
  'user',
  '00000000-0000-0000-0000-000000000000',
])

/** Whether an id may take part in a merge. Wrong ones would glue strangers together. */
export function namesOnePerson(id: Json): id is string {
  if (typeof id !== 'string' || !isStorable(id) || codePoints(id, customerIdCharsMax) > customerIdCharsMax) return false
  return !classNames.has(unquoted(id.trim()).trim().toLowerCase())
}

function unquoted(text: string): string {
  const first = text.at(0)
  const quoted = text.length > 1 && first === text.at(-1) && (first === '"' || first === "'" || first === '`')
  return quoted ? text.slice(1, -1) : text
}
