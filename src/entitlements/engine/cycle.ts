import type { Cycle, Ms } from '../types.ts'

/** Units of one length. UTC has no daylight saving, so days and weeks are of one length too. */
const fixedMs = { minute: 60_000, hour: 3_600_000, day: 86_400_000, week: 604_800_000 } as const
/** Units counted in months of the calendar. */
const months = { month: 1, quarter: 3, semiAnnual: 6, year: 12 } as const

/** The last instant of the calendar. A period that would end after it ends there. */
const calendarEnd: Ms = 8_640_000_000_000_000

export interface Period {
  no: bigint
  start: Ms
  /** The start of the next period; the period itself ends just before. */
  end: Ms
}

/** The period that `t` lies in, counted from the anchor: start <= t < end. Before the anchor it is period 0. */
export function periodAt(cycle: Cycle, t: Ms): Period {
  const no = numberAt(cycle, t)
  return { no: BigInt(no), start: startOf(cycle, no), end: startOf(cycle, no + 1) }
}

/** The first instant of period `no`. */
export function periodStart(cycle: Cycle, no: bigint): Ms {
  return startOf(cycle, Number(no))
}

function numberAt(cycle: Cycle, t: Ms): number {
  const { anchor, unit, count } = cycle
  if (t < anchor) return 0
  if (isFixed(unit)) return Math.floor((t - anchor) / (fixedMs[unit] * count))

  // The period whose start has the month of t, or the one before it: that start may come later in the month.
  const no = Math.floor((monthOf(new Date(t)) - monthOf(new Date(anchor))) / (months[unit] * count))
  return startOf(cycle, no) <= t ? no : no - 1
}

function startOf(cycle: Cycle, no: number): Ms {
  const { anchor, unit, count } = cycle
  const start = isFixed(unit) ? anchor + no * fixedMs[unit] * count : addMonths(anchor, no * months[unit] * count)
  return Number.isNaN(start) ? calendarEnd : Math.min(start, calendarEnd)
}

/** The same day of the month and time of day, or the last day of a shorter month. NaN beyond the calendar. */
function addMonths(anchor: Ms, count: number): Ms {
  const date = new Date(anchor)
  const month = monthOf(date) + count
  const year = Math.floor(month / 12)
  const monthOfYear = month - year * 12
  return date.setUTCFullYear(year, monthOfYear, Math.min(date.getUTCDate(), daysIn(year, monthOfYear)))
}

/** Months since the year 0. */
function monthOf(date: Date): number {
  return date.getUTCFullYear() * 12 + date.getUTCMonth()
}

const days = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]

function daysIn(year: number, monthOfYear: number): number {
  const isLeap = year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0)
  return monthOfYear === 1 && isLeap ? 29 : (days[monthOfYear] ?? 31)
}

function isFixed(unit: Cycle['unit']): unit is keyof typeof fixedMs {
  return unit in fixedMs
}
