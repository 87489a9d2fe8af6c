import type { Findings } from './findings.ts'

/** Names that begin with $ and may start, satisfy and end something. */
const systemEvents = new Set([
  ...['$identify', '$app_installed', '$app_updated', '$app_opened', '$app_backgrounded', '$feature_used'],
  ...['$products_unavailable', '$screen_shown', '$screen_dismissed', '$purchase_completed', '$purchase_failed'],
  ...['$purchase_cancelled', '$purchase_pending', '$purchase_synced', '$restore_completed', '$restore_failed'],
  ...['$restore_no_purchases', '$notifications_enabled', '$notifications_denied', '$permission_granted'],
  ...['$permission_denied', '$tracking_authorized', '$tracking_denied', '$experience_shown', '$experience_dismissed'],
  ...['$experience_errored', '$experience_artifact_load_succeeded', '$experience_artifact_load_failed'],
  ...['$customer_updated', '$app_action_requested', '$experiment_exposure'],
])

/** Of what triggers, waits, goals and expressions ask for. */
export function checkEventName(name: string, path: string, findings: Findings): void {
  if (!name.startsWith('$') || systemEvents.has(name)) return
  findings.add(
    path,
    'event_reserved',
    `"${name}" starts with $ and is not in the list of events usable in triggers, waits and goals.`,
  )
}
