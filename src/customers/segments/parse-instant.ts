import { parseTimestamp, type Report } from '../../events/index.ts'

/** An ISO 8601 time in Unix milliseconds. Null: there is none. Undefined: something was reported. */
export function parseInstant(json: unknown, path: string, report: Report): number | null | undefined {
  if (json === undefined) return null
  const at = typeof json === 'string' ? parseTimestamp(json) : null
  if (at !== null) return at
  report(path, 'must be an ISO 8601 time')
  return undefined
}
