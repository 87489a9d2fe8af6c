import { hash } from 'node:crypto'
import type { EventPayload } from './types.ts'

/**
 * A 64-bit hash of what a client sent, from the event as it stands in the log: by it a retry that reuses a uuid for another
 * body is noticed. What depends on the receipt is left out: a timestamp that is the time of receipt, and warnings.
 */
export function bodyHash(text: string, { timestamp, warnings }: EventPayload, receivedAt: number): bigint {
  let body = text
  // Only keys have unescaped quotes around them, and the texts before this one come without: the first match is the field.
  if (Date.parse(timestamp) === receivedAt) body = body.replace(`,"timestamp":"${timestamp}"`, '')
  if (warnings) body = body.replace(`,"warnings":${JSON.stringify(warnings)}`, '')
  return hash('sha1', body, 'buffer').readBigInt64BE(0)
}
