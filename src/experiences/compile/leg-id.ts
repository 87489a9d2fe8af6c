import { hash } from 'node:crypto'
import { canonicalJson } from '../../kernel/canonical-json.ts'

/** The same in every version, locale and app. The prefix is no interface word: it does not follow the namespace. */
export function legIdOf(experienceId: string, sectionKey: string): string {
  return hash('sha256', `service.leg.v1\n${canonicalJson({ experienceId, sectionKey })}`)
}
