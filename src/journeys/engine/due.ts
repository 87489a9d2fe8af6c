import type { Json } from '../../events/index.ts'
import { parseTimestamp } from '../../events/index.ts'
import { dayMs, serverWaitDaysMax } from '../../kernel/limits.ts'
import type { Ms } from '../types.ts'

export interface TimeWindow {
  /** HH:MM. An end that is not after the start is on the next day. */
  startTime: string
  endTime: string
  timezone: string
  /** 0 is Sunday; none are all. */
  daysOfWeek: number[]
}

/** A time that a property or field holds: ISO 8601 or Unix milliseconds. What holds none is due at once, none is later than 90 days. */
export function dueUntil(value: Json | undefined, now: Ms): Ms {
  const at = typeof value === 'string' ? parseTimestamp(value) : value
  if (typeof at !== 'number' || !Number.isFinite(at)) return now
  return Math.min(Math.max(Math.trunc(at), now), now + serverWaitDaysMax * dayMs)
}

/** `now` when it lies in a window, else the next window's start. The day of a window is the one it begins on. */
export function dueInWindow({ startTime, endTime, timezone, daysOfWeek }: TimeWindow, now: Ms): Ms {
  const today = localDay(now, timezone)
  const [start, end] = [minutesOf(startTime), minutesOf(endTime)]
  // Yesterday's may last until today; of any eight days one is allowed.
  for (let day = today - dayMs; day <= today + 8 * dayMs; day += dayMs) {
    if (daysOfWeek.length > 0 && !daysOfWeek.includes(new Date(day).getUTCDay())) continue
    const closes = instantOf(end <= start ? day + dayMs : day, end, timezone)
    if (closes > now) return Math.max(instantOf(day, start, timezone), now)
  }
  return now
}

/** Midnight of the local date, as if it were UTC. */
function localDay(at: Ms, timezone: string): number {
  return Math.floor((at + offsetMs(at, timezone)) / dayMs) * dayMs
}

/** Times that a change of the clock skips are those after it. */
function instantOf(day: number, minutes: number, timezone: string): Ms {
  const local = day + minutes * 60_000
  const guess = local - offsetMs(local, timezone)
  return local - offsetMs(guess, timezone)
}

function minutesOf(time: string): number {
  const [hours = 0, minutes = 0] = time.split(':').map(Number)
  return hours * 60 + minutes
}

const formats = new Map<string, Intl.DateTimeFormat>()

/** How far the zone is ahead of UTC. */
function offsetMs(at: Ms, timeZone: string): number {
  let format = formats.get(timeZone)
  if (!format) {
    const numeric = { year: 'numeric', month: 'numeric', day: 'numeric', hour: 'numeric', minute: 'numeric' } as const
    format = new Intl.DateTimeFormat('en-US', {
      timeZone,
      hourCycle: 'h23',
      era: 'short',
      ...numeric,
      second: 'numeric',
    })
    formats.set(timeZone, format)
  }
  const part = Object.fromEntries(format.formatToParts(at).map(({ type, value }) => [type, Number(value)]))
  const { year = 0, month = 1, day = 1, hour = 0, minute = 0, second = 0 } = part
  return Date.UTC(year, month - 1, day, hour, minute, second) - Math.floor(at / 1000) * 1000
}
