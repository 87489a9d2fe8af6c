/** ISO 8601 periods as both stores write them: P3D, P1W, P1M, P1Y; and PT5M, for testers. */
const shape = /^P(?:(\d+)Y)?(?:(\d+)M)?(?:(\d+)W)?(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)S)?)?$/
export const minuteMs = 60_000
export const hourMs = 60 * minuteMs
export const dayMs = 24 * hourMs
export const monthMs = 30 * dayMs

export function isPeriod(text: string): boolean {
  const match = shape.exec(text)
  return match?.slice(1).some((part) => Number(part) > 0) ?? false
}

/** A month from the 31st ends on the last day of the next, and what follows stays there: stores do so too. */
export function addPeriod(at: number, period: string): number {
  const parts =
    shape
      .exec(period)
      ?.slice(1)
      .map((part) => Number(part ?? 0)) ?? []
  const [years = 0, months = 0, weeks = 0, days = 0, hours = 0, minutes = 0, seconds = 0] = parts
  const start = new Date(at)
  const moved = new Date(at)
  moved.setUTCDate(1)
  moved.setUTCMonth(start.getUTCMonth() + years * 12 + months)
  const lastDay = new Date(Date.UTC(moved.getUTCFullYear(), moved.getUTCMonth() + 1, 0)).getUTCDate()
  moved.setUTCDate(Math.min(start.getUTCDate(), lastDay))
  return moved.getTime() + (weeks * 7 + days) * dayMs + hours * hourMs + minutes * minuteMs + seconds * 1000
}
