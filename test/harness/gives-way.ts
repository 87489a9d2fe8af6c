import { readFileSync } from 'node:fs'
import { getPriority } from 'node:os'

/** Whether a process works only while no other wants to: by itself, and as a session where the system shares between these. */
export function givesWay(processId: number): boolean {
  return getPriority(processId) === 19 && /nice 19\b|^$/.test(autogroupOf(processId))
}

/** '' on other systems, and where Linux does without. */
function autogroupOf(processId: number): string {
  try {
    return readFileSync(`/proc/${processId}/autogroup`, 'utf8').trim()
  } catch {
    return ''
  }
}
