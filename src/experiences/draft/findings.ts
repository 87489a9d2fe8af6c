import { draftIssuesMax } from '../../kernel/limits.ts'

const errorCodes = [
  'value_invalid',
  'unknown_key',
  'id_invalid',
  'id_duplicate',
  'action_unknown',
  'action_wrong_plane',
  'outlet_missing',
  'outlet_unknown',
  'target_missing',
  'step_unreachable',
  'cycle_untimed',
  'limit_exceeded',
  'trigger_enrolment',
  'event_reserved',
  'ir_invalid',
  'ir_plane',
  'goal_window',
  'goal_mutable',
  'exit_incomplete',
  'route_duplicate',
  'route_dismiss',
  'screen_unrendered',
  'locale_incomplete',
  'artefact_missing',
  'requirements_missing',
  'presents_without_screen',
  'capability_missing',
  'placement_missing',
  'product_not_mapped',
  'reference_missing',
  'experiment_variants',
  'experiment_state',
  'field_undeclared',
  'field_type',
  'field_unsatisfied',
  'grant_untrusted',
  'value_unsafe',
  'descriptor_size',
] as const
const warningCodes = ['W_always', 'W_preview_outdated', 'W_grant_loop'] as const

export type FindingCode = (typeof errorCodes)[number] | (typeof warningCodes)[number]

/** One thing that is wrong with a draft. `path` is a JSON pointer into it. */
export interface DraftIssue {
  path: string
  message: string
  code: FindingCode
}

/** What is found in one draft: all of it, up to a bound. */
export class Findings {
  readonly issues: DraftIssue[] = []
  readonly warnings: DraftIssue[] = []

  add(path: string, code: FindingCode, message: string): void {
    const list = code.startsWith('W_') ? this.warnings : this.issues
    if (list.length < draftIssuesMax) list.push({ path, message, code })
  }
}

/** The pointer to a member. */
export function under(path: string, ...keys: (string | number)[]): string {
  return path + keys.map((key) => `/${String(key).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('')
}
