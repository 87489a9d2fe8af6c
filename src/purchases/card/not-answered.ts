import type { Refused } from '../types.ts'
import type { CardAnswer } from './api.ts'

/** No verdict: whoever asks may ask again. */
export function notAnswered(answer: Exclude<CardAnswer, { kind: 'ok' }>): Refused {
  if (answer.kind === 'limited') return unavailable('limited', answer.retryAfterS ?? undefined)
  return answer.kind === 'silent' ? unavailable(answer.why, answer.retryAfterS) : unavailable(answer.kind)
}

export function unavailable(detail: string, retryAfterS?: number): Refused {
  return { kind: 'refused', suffix: 'unavailable', detail, ...(retryAfterS === undefined ? {} : { retryAfterS }) }
}
