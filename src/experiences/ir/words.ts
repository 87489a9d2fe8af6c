/** The words of expressions that their grammar and their judge share. */
export const predicates = [
  ...['eq', 'neq', 'icontains', 'regex', 'gt', 'gte', 'lt', 'lte', 'is_set', 'is_not_set', 'in', 'not_in'],
  ...['is_date_exact', 'is_date_after', 'is_date_before'],
] as const
export const comparisons = ['==', '!=', '<', '<=', '>', '>=', 'in', 'not_in'] as const
export const periods = ['day', 'week', 'month', 'year'] as const
/** Nodes that stand for an instant; a date is compared with nothing else. */
export const timeTypes = [
  ...['Timestamp', 'Time.Now', 'Time.Ago', 'Time.Window', 'Events.FirstTime', 'Events.LastTime'],
] as const

/** Whether a predicate asks how something compares, not whether it is there. */
export function needsValue(op: string): boolean {
  return op !== 'has' && op !== 'is_set' && op !== 'is_not_set'
}
