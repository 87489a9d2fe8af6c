import { setTimeout as sleep } from 'node:timers/promises'
import { createBell } from '../../db/bell.ts'
import { isRetryable, Pool } from '../../db/pool.ts'
import { StaleSlice } from '../../events/index.ts'
import { sendAnnouncements } from '../../experiences/index.ts'
import { announcePollMs, timerPollMsMax, timerPollMsMin, timersAtOnce, webhooksAtOnce } from '../../kernel/limits.ts'
import type { ApplyServices } from '../apply/services.ts'
import { sendWebhooks } from '../outbox/send.ts'
import { journeySettings } from '../store/journey-store.ts'
import { engineChannel } from '../store/timer-store.ts'
import { fireTimers } from './fire.ts'

/** One piece of the engine's work: does a little and tells whether there may be more. */
export type Turn = (pool: Pool) => Promise<boolean>

export interface JourneysOptions {
  url: string
  services: ApplyServices
  /** Before timers, such as the inbox: what came in time comes first. */
  turns: readonly Turn[]
  /** What webhooks are signed with lies sealed under this key. */
  sealingKey: Buffer
  /** Webhooks may go to addresses of the own network. */
  webhooksToPrivate: boolean
  /** Ends it after the turn under way. */
  signal: AbortSignal
}

/** Runs journeys until `signal`: timers and what else is given, webhooks beside them. Any number of processes may. */
export async function runJourneys(options: JourneysOptions): Promise<void> {
  const { url, services, turns, sealingKey, webhooksToPrivate: allowPrivate } = options
  await using pool = new Pool(url, { name: 'journeys', max: 4, settings: journeySettings })
  const timers: Turn = async () => (await fireTimers({ pool, services })) === timersAtOnce
  const webhooks: Turn = async () =>
    (await sendWebhooks({ pool, services, sealingKey, allowPrivate })) === webhooksAtOnce
  const announcements: Turn = async () =>
    (await sendAnnouncements({ pool, log: services.log, sealingKey, allowPrivate })) === webhooksAtOnce
  // An endpoint may take its time: nothing else waits for it.
  await Promise.all([
    take(pool, [...turns, timers], options),
    take(pool, [webhooks], options),
    repeat(pool, announcements, options),
  ])
}

/** For what nobody is in a hurry about: no connection listens for it. */
async function repeat(pool: Pool, turn: Turn, { services, signal }: JourneysOptions): Promise<void> {
  while (!signal.aborted) {
    const more = await turn(pool).catch((error: unknown) => {
      services.log.warn({ err: error }, 'endpoints are told of Experiences later')
      return false
    })
    if (!more) await sleep(announcePollMs, undefined, { signal }).catch(() => {})
  }
}

async function take(pool: Pool, turns: readonly Turn[], { url, services, signal }: JourneysOptions): Promise<void> {
  await using bell = createBell(url, { channel: engineChannel, name: 'journeys' })
  while (!signal.aborted) {
    let more = false
    try {
      await bell.open()
      for (const turn of turns) more = (await attempt(turn)) || more
    } catch (error) {
      services.log.warn({ err: error }, 'journeys cannot be looked at for the moment')
    }
    if (!more) await bell.rung(signal, timerPollMsMin + Math.random() * (timerPollMsMax - timerPollMsMin))
  }

  /** One that fails holds up no other. */
  async function attempt(turn: Turn): Promise<boolean> {
    try {
      return !signal.aborted && (await turn(pool))
    } catch (error) {
      if (error instanceof StaleSlice) return true
      if (isRetryable(error)) services.log.warn({ err: error }, 'a step of journeys is tried again')
      else services.log.error({ err: error }, 'a step of journeys failed; it is tried again')
      return false
    }
  }
}
