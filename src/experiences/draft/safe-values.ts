import { type Findings, under } from './findings.ts'
import { isObject } from './shape.ts'

/** Numbers and text that not every JSON reader takes for the same. */
export function checkValues(value: unknown, path: string, findings: Findings): void {
  if (
    typeof value === 'number' &&
    (!Number.isFinite(value) || Object.is(value, -0) || (Number.isInteger(value) && !Number.isSafeInteger(value)))
  ) {
    findings.add(path, 'value_unsafe', 'Numbers must be finite, not -0, and integers within 2^53-1.')
  }
  if (typeof value === 'string' && !value.isWellFormed()) {
    findings.add(path, 'value_unsafe', 'Text contains a lone surrogate.')
  }
  if (Array.isArray(value)) for (const [i, item] of value.entries()) checkValues(item, under(path, i), findings)
  else if (isObject(value)) {
    for (const [key, member] of Object.entries(value)) {
      if (!key.isWellFormed()) findings.add(path, 'value_unsafe', 'Text contains a lone surrogate.')
      checkValues(member, under(path, key), findings)
    }
  }
}

/** Objects and lists inside one another, counting the outermost. */
export function depthOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0
  return 1 + Object.values(value).reduce((deepest: number, member) => Math.max(deepest, depthOf(member)), 0)
}
