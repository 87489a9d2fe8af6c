import { LRUCache } from 'lru-cache'
import { badTokensKeptMax } from '../../kernel/limits.ts'

const shortMs = 10 * 60_000
const longMs = 24 * 3600_000

/** Tokens that the store did not know, so that nobody can make us ask for them all day. Of one process. */
export interface KnownBad {
  has: (appId: string, tokenKey: string) => 'unknown' | 'invalid' | 'gone' | undefined
  add: (appId: string, tokenKey: string, why: 'unknown' | 'invalid' | 'gone') => void
}

/** A token the store has not heard of may be minutes old; a dead one and one of another package stay what they are. */
export function createKnownBad(): KnownBad {
  const kept = new LRUCache<string, 'unknown' | 'invalid' | 'gone'>({ max: badTokensKeptMax })
  return {
    has: (appId, tokenKey) => kept.get(`${appId} ${tokenKey}`),
    add: (appId, tokenKey, why) => {
      kept.set(`${appId} ${tokenKey}`, why, { ttl: why === 'unknown' ? shortMs : longMs })
    },
  }
}
