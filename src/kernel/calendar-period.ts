const pattern =
  /^P(?!$)(?:(\d{1,3})Y)?(?:(\d{1,3})M)?(?:(\d{1,3})W)?(?:(\d{1,4})D)?(?:T(?!$)(?:(\d{1,4})H)?(?:(\d{1,4})M)?(?:(\d{1,5})S)?)?$/

/** ISO 8601, such as `P1M` or `P1Y6M`; whole numbers, and not nothing. */
export function isCalendarPeriod(text: string): boolean {
  return pattern.test(text) && /[1-9]/.test(text)
}

/** The instant a calendar period later, in UTC; the 31st of a shorter month is its last day. Unix milliseconds. */
export function addCalendarPeriod(from: number, text: string): number {
  const [, ...parts] = pattern.exec(text) ?? []
  const [years = 0, months = 0, weeks = 0, days = 0, hours = 0, minutes = 0, seconds = 0] = parts.map((part) =>
    Number(part ?? 0),
  )
  const date = new Date(from)
  const day = date.getUTCDate()
  date.setUTCDate(1)
  date.setUTCMonth(date.getUTCMonth() + 12 * years + months)
  const last = new Date(Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 0)).getUTCDate()
  date.setUTCDate(Math.min(day, last))
  return date.getTime() + ((((weeks * 7 + days) * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000
}
