import { addPeriod, isPeriod, monthMs } from '../period.ts'
import type { SimApp } from '../world.ts'

const secondMs = 1000

/**
 * Everything sold from now on lasts as much less as a month takes: for a service that follows no clock but the wall's.
 * Stores do the same to testers.
 */
export function shorten(app: SimApp, monthTakesMs: number): void {
  const text = JSON.stringify(app.products, (name, value: unknown) =>
    ['period', 'grace', 'hold'].includes(name) && typeof value === 'string' && isPeriod(value)
      ? `PT${shortMs(value, monthTakesMs) / secondMs}S`
      : value,
  )
  app.products = JSON.parse(text)
}

/** Whole seconds, at least one. */
export function shortMs(period: string, monthTakesMs: number): number {
  return Math.max(Math.round((addPeriod(0, period) * monthTakesMs) / monthMs / secondMs), 1) * secondMs
}
