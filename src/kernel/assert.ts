/** Stops a request that would otherwise answer something wrong. Stays on in production. */
export function assert(condition: unknown, message: string): asserts condition {
  if (!condition) throw new Error(`assertion failed: ${message}`)
}

/** For the default branch of an exhaustive switch. */
export function unreachable(value: never): never {
  throw new Error(`unreachable: ${String(value)}`)
}

/** The value, or a stopped request when there is none. */
export function must<T>(value: T | null | undefined, message: string): T {
  assert(value !== null && value !== undefined, message)
  return value
}
