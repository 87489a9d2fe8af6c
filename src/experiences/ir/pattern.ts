import { LRUCache } from 'lru-cache'
import { RE2JS } from 're2js'
import { irPatternsKeptMax } from '../../kernel/limits.ts'

const compiled = new LRUCache<string, { pattern: RE2JS | 'invalid' | 'unsupported' }>({ max: irPatternsKeptMax })

/**
 * Whether a pattern is found in a text. Time grows with the text's length only: authors write patterns, and anybody sends texts.
 * What has no such time (look-around, references back) is unknown here, though devices may judge it; no pattern at all is false.
 */
export function found(pattern: string, text: string): boolean | undefined {
  let kept = compiled.get(pattern)
  if (!kept) {
    kept = { pattern: compile(pattern) }
    compiled.set(pattern, kept)
  }
  if (kept.pattern === 'invalid') return false
  return kept.pattern === 'unsupported' ? undefined : kept.pattern.matcher(text).find()
}

function compile(pattern: string): RE2JS | 'invalid' | 'unsupported' {
  try {
    return RE2JS.compile(pattern)
  } catch {
    return isPattern(pattern) ? 'unsupported' : 'invalid'
  }
}

function isPattern(pattern: string): boolean {
  try {
    new RegExp(pattern, 'u')
    return true
  } catch {
    return false
  }
}
