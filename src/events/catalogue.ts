/** What a system event is about. `retired`: older clients still send it; it is stored and nothing else. */
export type SystemEventGroup =
  | 'identity'
  | 'journey'
  | 'experiment'
  | 'commerce'
  | 'interface'
  | 'lifecycle'
  | 'retired'

/** Whether the event may start something: never, always, or only when our own server recorded it. */
export type Triggerable = 'never' | 'always' | 'from_server'

/** Whom an event gives something to do besides being stored; null: nobody. */
export type SystemEventConsumer = 'customers' | 'journeys' | 'experiments' | null

export interface SystemEvent {
  name: string
  group: SystemEventGroup
  triggerable: Triggerable
  consumer: SystemEventConsumer
}

/** Every name with a leading `$` that clients may send. Other `$` names are stored as not recognised. */
export const systemEvents: readonly SystemEvent[] = [
  ...group('identity', 'never', ['identify'], 'customers'),
  ...group('journey', 'never', ['journey_leg_started', 'journey_leg_completed'], 'journeys'),
  ...group('experiment', 'always', ['experiment_exposure', 'experience_shown'], 'experiments'),
  // From a device these are telemetry: they never grant, spend, convert or count as revenue, and so start nothing either.
  ...group('commerce', 'from_server', [
    ...['purchase_completed', 'purchase_failed', 'purchase_cancelled', 'purchase_pending', 'purchase_synced'],
    ...['restore_completed', 'restore_failed', 'restore_no_purchases', 'feature_used'],
  ]),
  ...group('interface', 'always', [
    ...['journey_milestone', 'experience_dismissed', 'experience_errored'],
    ...['experience_artifact_load_succeeded', 'experience_artifact_load_failed', 'screen_shown', 'screen_dismissed'],
    ...['link_opened', 'customer_updated', 'app_action_requested', 'products_unavailable'],
  ]),
  ...group('lifecycle', 'always', [
    ...['app_installed', 'app_updated', 'app_opened', 'app_backgrounded'],
    ...['notifications_enabled', 'notifications_denied', 'permission_granted', 'permission_denied'],
    ...['tracking_authorized', 'tracking_denied'],
  ]),
  ...group('retired', 'never', [
    ...['event_sent', 'journey_start', 'journey_started', 'journey_node_executed', 'journey_enrolled'],
    ...['journey_transition', 'journey_converted', 'journey_exited', 'journey_effect_requested'],
    ...['journey_effect_completed', 'journey_claimed', 'journey_handoff', 'journey_parked', 'journey_superseded'],
    ...['experiment_exposure_error', 'experiment_exposure_fallback'],
  ]),
]

const byName = new Map(systemEvents.map((event) => [event.name, event]))

/** Names that only the service records, through `appendFacts`. From anybody else they are stored as not recognised. */
export const factNames = [
  ...['$feature_granted', '$feature_revoked', '$feature_exhausted', '$feature_reset', '$feature_reversed'],
  '$feature_access_changed',
] as const

const facts = new Set<string>(factNames)

export function isFactName(name: string): boolean {
  return facts.has(name) || name === purchaseCompleted
}

/** Devices send it too; from the service alone it is true. */
const purchaseCompleted = '$purchase_completed'

/** The catalogue's entry of a `$` name. */
export function systemEvent(name: string): SystemEvent | undefined {
  return byName.get(name)
}

/** True for the app's own names and for system events of the catalogue; for names of facts when the event is one. */
export function isRecognised(name: string, { fact }: { fact: boolean }): boolean {
  return !name.startsWith('$') || byName.has(name) || (fact && facts.has(name))
}

function group(
  name: SystemEventGroup,
  triggerable: Triggerable,
  names: readonly string[],
  consumer: SystemEventConsumer = null,
): SystemEvent[] {
  return names.map((each) => ({ name: `$${each}`, group: name, triggerable, consumer }))
}
