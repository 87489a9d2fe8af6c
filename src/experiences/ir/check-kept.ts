import type { Findings } from '../draft/findings.ts'
import { isObject } from '../draft/shape.ts'
import { checkIr } from './grammar.ts'
import { withSegments } from './history.ts'

/** Judges an envelope of the server's that may ask past events: what Segments can't keep of it is told. */
export function checkKept(value: unknown, path: string, findings: Findings): void {
  const before = findings.issues.length
  checkIr(value, path, findings, 'kept')
  if (findings.issues.length > before || !isObject(value)) return
  for (const { type, reason } of withSegments(value.expr, '').unkept) {
    const words = `"${type}" cannot be judged on the server; move it to an entry condition on the device. Here ${reason}.`
    findings.add(path, 'ir_plane', words)
  }
}
