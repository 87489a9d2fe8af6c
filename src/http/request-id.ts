import { randomText } from '../kernel/ids.ts'

const visibleAscii = /^[\x21-\x7e]{1,128}$/
const prefix = `req_${randomText(12)}`
let count = 0

/** The caller's `X-Request-Id` when it is 1 to 128 visible ASCII characters, else one of ours. */
export function requestId(given: string | string[] | undefined): string {
  if (typeof given === 'string' && visibleAscii.test(given)) return given
  count++
  return prefix + count.toString(36)
}
