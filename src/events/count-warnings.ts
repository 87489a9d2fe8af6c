import { warningDetailCharsMax, warningSamplesMax } from '../kernel/limits.ts'
import type { LoggedEvent, Warning } from './types.ts'

/** A warning and the event it is about. */
export interface Noted {
  warning: Warning
  event: LoggedEvent
}

export interface CountedWarnings {
  /** Unix milliseconds, all three. */
  hours: { code: string; hour: number; count: number; first: number; last: number }[]
  codes: { code: string; samples: number }[]
  /** Of each code at most as many as are kept; `back` counts from the newest, which is 0. */
  samples: {
    code: string
    back: number
    at: number
    uuid: string
    event: string
    distinctId: string
    detail: string | null
  }[]
}

const hourMs = 3600_000

/** Folds the warnings of a slice, by the hour their events were received in, so that a flood of them is a few rows. */
export function countWarnings(noted: readonly Noted[]): CountedWarnings {
  const hours = new Map<string, CountedWarnings['hours'][number]>()
  const byCode = new Map<string, Noted[]>()
  for (const each of noted) {
    const { code } = each.warning
    const at = each.event.receivedAt
    const hour = Math.floor(at / hourMs) * hourMs
    const counted = hours.get(`${hour} ${code}`)
    if (counted) {
      counted.count++
      counted.first = Math.min(counted.first, at)
      counted.last = Math.max(counted.last, at)
    } else hours.set(`${hour} ${code}`, { code, hour, count: 1, first: at, last: at })
    const others = byCode.get(code)
    if (others) others.push(each)
    else byCode.set(code, [each])
  }
  const kept = [...byCode].map(([code, all]) => ({ code, newest: all.slice(-warningSamplesMax) }))
  return {
    hours: [...hours.values()],
    codes: kept.map(({ code, newest }) => ({ code, samples: newest.length })),
    samples: kept.flatMap(({ newest }) => newest.map((each, i) => sampleOf(each, newest.length - 1 - i))),
  }
}

function sampleOf({ warning, event }: Noted, back: number): CountedWarnings['samples'][number] {
  const { uuid, distinctId, receivedAt, payload } = event
  const detail = warning.detail?.slice(0, warningDetailCharsMax).toWellFormed() ?? null
  return { code: warning.code, back, at: receivedAt, uuid, event: payload.event, distinctId, detail }
}
