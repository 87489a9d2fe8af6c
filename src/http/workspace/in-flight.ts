import Type from 'typebox'
import { activate, type Experience, type PublishServices, type StateVerb } from '../../experiences/index.ts'
import { holdJourneys, moveJourneys, resumeHeldJourneys, stopJourneys, takeStarts } from '../../journeys/index.ts'
import type { Clock } from '../../kernel/clock.ts'
import type { Scope } from '../../tenancy/index.ts'
import { oneOf } from '../schema.ts'
import type { Change } from './route.ts'

/** What becomes of journeys under way when a version is made live, or an Experience is paused or taken back. */
export const inFlight = Type.Optional(oneOf('finish', 'stop', 'move_armed'))

/** Makes a version live, and says what becomes of the journeys that are under way. */
export async function activateFor(
  { tx }: Change,
  scope: Scope,
  experience: Experience,
  command: Parameters<typeof activate>[3],
  services: PublishServices & { clock: Clock },
): Promise<void> {
  const { appIds = null, inFlight: chosen = 'finish' } = command
  await activate(tx, scope, experience, command, services)
  // Of publications before this one: what they began stops, or moves to what is live now. They began some while this one was made.
  if (chosen === 'finish') return
  await takeStarts(tx, experience)
  const at = new Date(services.clock.now())
  if (chosen === 'stop') await stopJourneys(tx, experience, { reason: 'superseded_version', appIds, at })
  if (chosen === 'move_armed') await moveJourneys(tx, experience, { reason: 'activate', appIds, at })
}

/** What a command may say of them. */
export const choices = {
  pause: { in_flight: Type.Optional(oneOf('continue', 'hold')) },
  resume: {},
  unpublish: { in_flight: Type.Optional(oneOf('finish', 'stop')) },
  archive: {},
}

/** Tells the journeys under way, in the background. */
export async function tellOpen(
  { tx }: Change,
  after: Experience,
  {
    verb,
    choice,
    appIds,
    clock,
  }: { verb: StateVerb; choice: string | undefined; appIds: string[] | null; clock: Clock },
): Promise<void> {
  const isHeld = verb === 'pause' && choice === 'hold'
  if (!isHeld && verb !== 'resume' && verb !== 'archive' && choice !== 'stop') return
  // Those that are beginning saw the Experience as it was.
  await takeStarts(tx, after)
  const command = { reason: verb, appIds, at: new Date(clock.now()) }
  if (isHeld) await holdJourneys(tx, after, command)
  if (verb === 'resume') await resumeHeldJourneys(tx, after, command)
  if (verb === 'archive' || choice === 'stop') await stopJourneys(tx, after, command)
}
