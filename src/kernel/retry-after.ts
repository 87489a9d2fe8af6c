/** Seconds for a `Retry-After`: 1 to 8, so that callers refused together do not come back together. */
export function retryAfterS(): number {
  return 1 + Math.floor(Math.random() * 8)
}
