import type { Config } from './config.ts'
import type { Tx } from './db/pool.ts'
import { activate, activateKey, createExperience, createKey, freeze, saveDraft } from './experiences/index.ts'
import { systemClock } from './kernel/clock.ts'
import { wireNames } from './kernel/wire-names.ts'
import { createTryProfiles, selectPinned } from './profiles/index.ts'
import type { Scope } from './tenancy/index.ts'

/**
 * Two Experiences without screens, live in the demo's apps: `welcome` begins on a device when somebody has signed up,
 * `credits_gift` when a backend says so. With a key that signs what is published.
 */
export async function demoExperiences(
  tx: Tx,
  scope: Scope,
  {
    sealingKey,
    config: { namespace, eventRetentionDays: keptDays, renderBaseUrl, assetBaseUrl },
  }: { sealingKey: Buffer; config: Config },
): Promise<void> {
  const names = wireNames(namespace)
  const tryProfiles = createTryProfiles({ names, renderBaseUrl, assetBaseUrl })
  const services = { names, deliverAlways: namespace === 'service', sealingKey, tryProfiles }
  const key = await createKey(tx, scope, { keyId: undefined, sealingKey })
  await activateKey(tx, [scope], key.publicId, '*', { ...services, pinned: selectPinned })
  const each = [
    { key: 'welcome', name: 'Welcome', draft: welcome },
    { key: 'credits_gift', name: 'A gift of credits', draft: gift },
  ]
  for (const { key: idOrKey, name, draft } of each) {
    await createExperience(tx, scope, { key: idOrKey, name })
    await saveDraft(tx, [scope], idOrKey, { draft, revision: 0 })
    const { experience, version, made } = await freeze(tx, scope, idOrKey, { note: null, keptDays }, services)
    const command = { versionId: version.publicId, made, by: 'setup', at: new Date(systemClock.now()) }
    await activate(tx, scope, experience, command, services)
  }
}

const common = {
  draftVersion: 1,
  platforms: ['ios', 'android'],
  locales: { default: 'en' },
  presentation: { style: 'full_screen', orientation: 'portrait', backgroundColor: '#FFFFFFFF' },
}

/** Tells the app at once, waits a day, and greets on the next visit. */
const welcome = {
  ...common,
  metadata: { name: 'Welcome', appDefaultTimezone: 'Etc/UTC' },
  policy: {
    entry: { trigger: { type: 'event', eventName: 'signup_completed' }, frequency: { type: 'one_time' } },
    exitWhenAny: [],
  },
  graph: {
    entry: 'tell',
    steps: [
      {
        id: 'tell',
        plane: 'device',
        action: { type: 'send_event', eventName: 'welcomed' },
        outlets: { next: 'later' },
      },
      { id: 'later', plane: 'server', action: { type: 'delay', durationMs: 86_400_000 }, outlets: { next: 'greet' } },
      { id: 'greet', plane: 'device', action: { type: 'app_action', name: 'greet' }, outlets: { next: null } },
    ],
  },
}

/** Gives 20 credits, and lets the app say so. */
const gift = {
  ...common,
  metadata: { name: 'A gift of credits', appDefaultTimezone: 'Etc/UTC' },
  policy: { entry: { trigger: { type: 'api' }, frequency: { type: 'every_match' } }, exitWhenAny: [] },
  graph: {
    entry: 'give',
    steps: [
      {
        id: 'give',
        plane: 'server',
        action: { type: 'grant_feature', featureId: 'ai_credits', amount: 20 },
        outlets: { next: 'tell' },
      },
      { id: 'tell', plane: 'device', action: { type: 'app_action', name: 'credits_given' }, outlets: { next: null } },
    ],
  },
}
