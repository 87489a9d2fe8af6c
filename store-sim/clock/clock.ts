import { monthMs } from '../period.ts'

/** Time of one simulated app: runs with the wall clock, faster, or only when told. */
export type Clock =
  | { mode: 'real'; aheadMs: number }
  /** `monthTakesMs` of wall time are thirty simulated days. */
  | { mode: 'accelerated'; monthTakesMs: number; wallAt: number; simAt: number }
  | { mode: 'manual'; at: number }

export const monthTakesMsMin = 30_000
export const monthTakesMsMax = 300_000

/** What everybody sees. An accelerated clock moves in steps, so that whoever has to follow it is told before. */
export function nowOf(clock: Clock, wall: number): number {
  switch (clock.mode) {
    case 'real':
      return wall + clock.aheadMs
    case 'accelerated':
      return clock.simAt
    case 'manual':
      return clock.at
  }
}

/** How far it should have come by now. */
export function goalOf(clock: Clock, wall: number): number {
  if (clock.mode !== 'accelerated') return nowOf(clock, wall)
  return Math.floor(clock.simAt + ((wall - clock.wallAt) * monthMs) / clock.monthTakesMs)
}

export type ClockMode = { mode: 'real' | 'manual' } | { mode: 'accelerated'; monthTakesMs: number }

/** Goes on from where it stands: time never jumps back. */
export function changeMode(clock: Clock, to: ClockMode, wall: number): Clock {
  const at = nowOf(clock, wall)
  switch (to.mode) {
    case 'real':
      return { mode: 'real', aheadMs: Math.max(0, at - wall) }
    case 'accelerated':
      return { mode: 'accelerated', monthTakesMs: to.monthTakesMs, wallAt: wall, simAt: at }
    case 'manual':
      return { mode: 'manual', at }
  }
}

/** Moves ahead; a running clock goes on running from there. */
export function moveTo(clock: Clock, at: number, wall: number): Clock {
  if (at <= nowOf(clock, wall)) return clock
  switch (clock.mode) {
    case 'real':
      return { mode: 'real', aheadMs: at - wall }
    case 'accelerated':
      return { ...clock, wallAt: wall, simAt: at }
    case 'manual':
      return { mode: 'manual', at }
  }
}
