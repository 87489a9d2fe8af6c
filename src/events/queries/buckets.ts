import type { Interval, TimeRange } from './types.ts'

const hourMs = 3_600_000
const dayMs = 24 * hourMs

/** True for names of the IANA time zone database, and for UTC. Offsets such as `+02:00` are no zones. */
export function isZone(name: string): boolean {
  if (!/^[A-Za-z][A-Za-z0-9_+\-/]{0,63}$/.test(name)) return false
  try {
    formatOf(name)
    return true
  } catch {
    return false
  }
}

/**
 * Where the buckets of a range begin, and the end of the last one: `n + 1` instants for `n` buckets. The first bucket holds
 * the start of the range. Days, weeks (from Monday) and months are those of the zone, so some days have 23 or 25 hours;
 * hours are of 60 minutes and begin where clocks of the zone show a full hour.
 */
export function bucketsOf({ start, end, zone }: TimeRange, interval: Interval): number[] {
  const offsetAt = offsetsOf(zone)
  if (interval === 'hour') return hoursOf(start, end, offsetAt)
  const edges: number[] = []
  let day = firstDay(localDay(start, offsetAt), interval)
  for (;;) {
    const edge = startOfDay(day, offsetAt)
    // A zone that skipped a calendar day has two days that begin at one instant.
    if (edge > (edges.at(-1) ?? Number.NEGATIVE_INFINITY)) edges.push(edge)
    if (edge >= end) return edges
    day = nextDay(day, interval)
  }
}

/** How many there can be at most, without counting them out. */
export function bucketsMax({ start, end }: TimeRange, interval: Interval): number {
  const shortest = { hour: hourMs, day: dayMs, week: 7 * dayMs, month: 28 * dayMs }[interval]
  return Math.ceil((end - start) / shortest) + 2
}

function hoursOf(start: number, end: number, offsetAt: Offsets): number[] {
  const edges: number[] = []
  let edge = Math.floor((start + offsetAt(start)) / hourMs) * hourMs - offsetAt(start)
  while (edge < end) {
    edges.push(edge)
    const next = edge + hourMs
    // A zone that moves by half an hour has one hour of an hour and a half.
    const past = mod(next + offsetAt(next), hourMs)
    edge = past === 0 ? next : next + hourMs - past
  }
  edges.push(edge)
  return edges
}

/** Days since 1970-01-01 of the zone's calendar. */
function localDay(instant: number, offsetAt: Offsets): number {
  return Math.floor((instant + offsetAt(instant)) / dayMs)
}

function firstDay(day: number, interval: Exclude<Interval, 'hour'>): number {
  if (interval === 'day') return day
  // 1970-01-01 was a Thursday.
  if (interval === 'week') return day - mod(day + 3, 7)
  return day - (new Date(day * dayMs).getUTCDate() - 1)
}

function nextDay(day: number, interval: Exclude<Interval, 'hour'>): number {
  if (interval === 'day') return day + 1
  if (interval === 'week') return day + 7
  const date = new Date(day * dayMs)
  return Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1) / dayMs
}

/** The first instant of a calendar day. Where clocks skip midnight, it is when they had skipped it. */
function startOfDay(day: number, offsetAt: Offsets): number {
  const midnight = day * dayMs
  // The offsets of a day before and after hold every change of the night between.
  const [before, after] = [offsetAt(midnight - dayMs), offsetAt(midnight + dayMs)]
  const candidates = [midnight - before, midnight - after].toSorted((a, b) => a - b)
  const found = candidates.find((at) => localDay(at, offsetAt) === day && localDay(at - 1, offsetAt) < day)
  return found ?? firstInstantOf(day, midnight, offsetAt)
}

/** By halving: between a day before and a day after, the calendar only moves on. */
function firstInstantOf(day: number, midnight: number, offsetAt: Offsets): number {
  let [low, high] = [midnight - 2 * dayMs, midnight + 2 * dayMs]
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2)
    if (localDay(middle, offsetAt) >= day) high = middle
    else low = middle
  }
  return high
}

/** Milliseconds that clocks of the zone are ahead of UTC at an instant. */
type Offsets = (instant: number) => number

/** Asks for two instants of each day only: a day that begins and ends with one offset has no other between. */
function offsetsOf(zone: string): Offsets {
  if (zone === 'UTC') return () => 0
  const starts = new Map<number, number>()
  const atStart = (day: number) => {
    const known = starts.get(day)
    if (known !== undefined) return known
    const offset = exactOffset(day * dayMs, zone)
    starts.set(day, offset)
    return offset
  }
  return (instant) => {
    const day = Math.floor(instant / dayMs)
    const offset = atStart(day)
    return offset === atStart(day + 1) ? offset : exactOffset(instant, zone)
  }
}

function exactOffset(instant: number, zone: string): number {
  const parts = new Map(
    formatOf(zone)
      .formatToParts(instant)
      .map(({ type, value }) => [type, Number(value)]),
  )
  const part = (name: Intl.DateTimeFormatPartTypes) => parts.get(name) ?? 0
  const shown = Date.UTC(part('year'), part('month') - 1, part('day'), part('hour'), part('minute'), part('second'))
  return shown - Math.floor(instant / 1000) * 1000
}

/** Making one takes 50 µs. A few zones are in use; all there are, are some hundreds. */
const formats = new Map<string, Intl.DateTimeFormat>()

function formatOf(zone: string): Intl.DateTimeFormat {
  const known = formats.get(zone)
  if (known) return known
  const format = new Intl.DateTimeFormat('en-US', {
    timeZone: zone,
    calendar: 'gregory',
    numberingSystem: 'latn',
    hourCycle: 'h23',
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
    second: 'numeric',
  })
  formats.set(zone, format)
  return format
}

function mod(value: number, by: number): number {
  return ((value % by) + by) % by
}
