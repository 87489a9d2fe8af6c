/**
 * The instant of an ISO 8601 date or date-time in Unix milliseconds, or null when it is none. Seconds and fraction are
 * optional; the zone is `Z`, `+hh:mm`, `+hhmm` or `+hh`; without zone and date-only mean UTC. Calendar days are real, years
 * 0001 to 9999, second 60 reads as 59.999. `Date.parse` rolls 30 February into March, reads zone-less times as local time
 * and refuses `+03`, so it is not asked.
 */
export function parseTimestamp(text: string): number | null {
  const year = digits(text, 0, 4)
  const month = digits(text, 5, 2)
  const day = digits(text, 8, 2)
  if (year < 1 || month < 1 || month > 12 || day < 1 || day > daysIn(year, month)) return null
  if (text.charCodeAt(4) !== hyphen || text.charCodeAt(7) !== hyphen) return null
  const midnight = daysSinceEpoch(year, month, day) * 86_400_000
  if (text.length === 10) return midnight

  const hour = digits(text, 11, 2)
  const minute = digits(text, 14, 2)
  if (text.charCodeAt(10) !== capitalT || hour < 0 || hour > 23) return null
  if (text.charCodeAt(13) !== colon || minute < 0 || minute > 59) return null
  const seconds = readSeconds(text)
  if (seconds === null) return null
  const offset = readOffset(text, seconds.end)
  if (offset === null) return null
  return midnight + hour * 3_600_000 + (minute - offset) * 60_000 + seconds.ms
}

const plus = 43
const comma = 44
const hyphen = 45
const point = 46
const colon = 58
const capitalT = 84
const capitalZ = 90

/** The value of `count` decimal digits at `at`, or -1. */
function digits(text: string, at: number, count: number): number {
  let value = 0
  for (let i = at; i < at + count; i++) {
    const digit = text.charCodeAt(i) - 48
    if (!(digit >= 0 && digit <= 9)) return -1
    value = value * 10 + digit
  }
  return value
}

/** Milliseconds after the minute, and where the text goes on. */
function readSeconds(text: string): { ms: number; end: number } | null {
  if (text.charCodeAt(16) !== colon) return { ms: 0, end: 16 }
  const second = digits(text, 17, 2)
  if (second < 0 || second > 60) return null
  let end = 19
  let ms = 0
  const mark = text.charCodeAt(end)
  if (mark === point || mark === comma) {
    // Kept to the millisecond: further digits are read and left out.
    let unit = 100
    for (end = 20; digits(text, end, 1) >= 0; end++) {
      ms += Math.trunc(unit) * digits(text, end, 1)
      unit /= 10
    }
    if (end === 20) return null
  }
  return { ms: second === 60 ? 59_999 : second * 1000 + ms, end }
}

/** Minutes ahead of UTC; 0 without a zone; null when what follows is no zone. */
function readOffset(text: string, at: number): number | null {
  const rest = text.length - at
  if (rest === 0) return 0
  const mark = text.charCodeAt(at)
  if (mark === capitalZ) return rest === 1 ? 0 : null
  if (mark !== plus && mark !== hyphen) return null
  const withColon = rest === 6 && text.charCodeAt(at + 3) === colon
  if (!withColon && rest !== 5 && rest !== 3) return null
  const hours = digits(text, at + 1, 2)
  const minutes = rest === 3 ? 0 : digits(text, withColon ? at + 4 : at + 3, 2)
  if (hours < 0 || hours > 23 || minutes < 0 || minutes > 59) return null
  return (mark === plus ? 1 : -1) * (hours * 60 + minutes)
}

function daysIn(year: number, month: number): number {
  if (month === 2) return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0) ? 29 : 28
  return month === 4 || month === 6 || month === 9 || month === 11 ? 30 : 31
}

/** Days from 1970-01-01 in the proleptic Gregorian calendar; `Date.UTC` would read years below 100 as 19xx. */
function daysSinceEpoch(year: number, month: number, day: number): number {
  const shifted = month > 2 ? year : year - 1
  const era = Math.floor(shifted / 400)
  const yearOfEra = shifted - era * 400
  const dayOfYear = Math.floor((153 * (month > 2 ? month - 3 : month + 9) + 2) / 5) + day - 1
  return era * 146_097 + yearOfEra * 365 + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100) + dayOfYear - 719_468
}
