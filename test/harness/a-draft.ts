/** A draft that is valid wherever nothing is named: a device section, two steps of the server, and a second section. */
export function aDraft() {
  return {
    draftVersion: 1,
    platforms: ['ios', 'android'],
    locales: { default: 'en', others: ['de'] },
    priority: 100,
    metadata: { name: 'Welcome', appDefaultTimezone: 'Europe/Berlin' },
    policy: {
      entry: {
        trigger: { type: 'event', eventName: 'signup_done' },
        enrolment: 'auto',
        frequency: { type: 'one_time' },
      },
      exitWhenAny: [],
    } as Record<string, unknown>,
    fields: {
      event: { source: { type: 'string', required: false } },
      responses: { why: { type: 'text', required: false } },
    } as Record<string, Record<string, object>>,
    graph: {
      entry: 'tell',
      steps: [
        device('tell', { type: 'send_event', eventName: 'welcome_offered' }, { next: 'later' }),
        server('later', { type: 'delay', durationMs: 86_400_000 }, { next: 'note' }),
        server(
          'note',
          { type: 'emit_event', eventName: 'day_later', properties: { from: field('source') } },
          { next: 'again' },
        ),
        device('again', { type: 'app_action', name: 'greet' }, { next: 'bye' }),
        device('bye', { type: 'exit', reason: 'greeted' }),
      ] as DraftStep[],
      routes: [] as object[],
      sections: {} as Record<string, object>,
    },
    presentation: { style: 'full_screen', orientation: 'portrait', backgroundColor: '#FFFFFFFF' },
  }
}

export interface DraftStep {
  id: string
  plane: string
  action: { type: string; [key: string]: unknown }
  outlets: Record<string, string | null>
}

type Outlets = Record<string, string | null>

export function device(id: string, action: DraftStep['action'], outlets: Outlets = {}): DraftStep {
  return { id, plane: 'device', action, outlets }
}

export function server(id: string, action: DraftStep['action'], outlets: Outlets = {}): DraftStep {
  return { id, plane: 'server', action, outlets }
}

/** The value of an event field. */
export function field(key: string) {
  return { type: 'Event.Field', key }
}
