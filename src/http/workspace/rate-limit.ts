import type { FastifyReply, FastifyRequest } from 'fastify'
import { must } from '../../kernel/assert.ts'
import type { Clock } from '../../kernel/clock.ts'
import { refuse } from '../../kernel/errors.ts'

export interface RateLimitOptions {
  clock: Clock
  /** Requests a minute of one secret key or user, in this process; 0: no limit. */
  requestsPerMinute: number
}

const windowMs = 60_000

/**
 * Counts the requests of each caller in the minute of the clock; all counts end with it, so what is held is bounded by the
 * callers of one minute.
 */
export function limitRate({ clock, requestsPerMinute: limit }: RateLimitOptions) {
  let minute = 0
  let counts = new Map<string, number>()

  function count(id: string, current: number): number {
    if (current !== minute) counts = new Map()
    minute = current
    const counted = (counts.get(id) ?? 0) + 1
    if (counted <= limit) counts.set(id, counted)
    return counted
  }

  return (request: FastifyRequest, reply: FastifyReply, done: (error?: Error) => void): void => {
    const now = clock.now()
    const current = Math.floor(now / windowMs)
    const counted = limit === 0 ? 0 : count(must(request.caller, 'the route is authenticated').actor.id, current)
    const resetsInS = Math.max(1, Math.ceil(((current + 1) * windowMs - now) / 1000))
    if (limit > 0) {
      reply
        .header('ratelimit-limit', limit)
        .header('ratelimit-remaining', Math.max(0, limit - counted))
        .header('ratelimit-reset', resetsInS)
    }
    if (counted <= limit) done()
    else done(refuse('rate_limited', { retryAfterS: resetsInS }))
  }
}
