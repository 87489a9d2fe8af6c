import { refuse } from '../../kernel/errors.ts'
import type { Cell, Cells } from './trend-store.ts'
import type { GroupBy, Line, Measure, Series, TrendSeries } from './types.ts'

/** The series as it is answered: each group with a value for every bucket, empty ones included. */
export function seriesOf(
  { event, measure }: Series,
  groupBy: GroupBy[],
  { cells, keys }: Cells,
  bucketCount: number,
): TrendSeries {
  const byGroup = Map.groupBy(cells, ({ group }) => group)
  const line = (group: number | null) => lineOf(measure, byGroup.get(group) ?? [], bucketCount)
  const shown = groupBy.length === 0 ? [{ key: {}, ...line(0) }] : []
  const grouped = keys.map((texts, i) => ({ key: keyOf(groupBy, texts), ...line(i + 1) }))
  return {
    event,
    measure: nameOf(measure),
    nonNumeric: 'property' in measure && measure.property !== null ? nonNumericIn(cells) : 0,
    groups: [...shown, ...grouped],
    other: byGroup.has(null) ? line(null) : null,
  }
}

/** Such as `count`, `sum(amount)` and, of the event's own value, `sum`. */
function nameOf(measure: Measure): string {
  return 'property' in measure && measure.property !== null ? `${measure.type}(${measure.property})` : measure.type
}

function lineOf(measure: Measure, cells: readonly Cell[], bucketCount: number): Line {
  const values = new Array<number | null>(bucketCount).fill(emptyOf(measure))
  const parts: Cell[] = []
  let total: Cell | undefined
  for (const cell of cells) {
    if (cell.bucket === null) {
      total = cell
      continue
    }
    parts.push(cell)
    values[cell.bucket - 1] = finite(cell.value) ?? emptyOf(measure)
  }
  return { total: total ? (finite(total.value) ?? emptyOf(measure)) : folded(measure, parts), values }
}

/** What a bucket without events has: no customers and no sum, but also no average. */
function emptyOf({ type }: Measure): number | null {
  return type === 'count' || type === 'unique_customers' || type === 'sum' ? 0 : null
}

/** The total of a measure whose buckets tell it. */
function folded(measure: Measure, cells: readonly Cell[]): number | null {
  const there = cells.filter((cell): cell is Cell & { value: number } => cell.value !== null)
  if (there.length === 0) return emptyOf(measure)
  const values = there.map(({ value }) => value)
  if (measure.type === 'min') return values.reduce((a, b) => Math.min(a, b))
  if (measure.type === 'max') return values.reduce((a, b) => Math.max(a, b))
  if (measure.type !== 'avg') return finite(values.reduce((a, b) => a + b))
  const numbers = there.reduce((sum, cell) => sum + cell.numbers, 0)
  return finite(there.reduce((sum, cell) => sum + cell.value * (cell.numbers / numbers), 0))
}

function nonNumericIn(cells: readonly Cell[]): number {
  const totals = cells.filter(({ bucket }) => bucket === null)
  // Statements that give totals give them for each group.
  const counted = totals.length > 0 ? totals : cells
  return counted.reduce((sum, { count, numbers }) => sum + count - numbers, 0)
}

function keyOf(groupBy: GroupBy[], texts: readonly string[]): Record<string, unknown> {
  const key: Record<string, unknown> = Object.create(null)
  for (const [i, { property }] of groupBy.entries()) key[property] = shownValue(texts[i] ?? 'null')
  return key
}

/** JSON that was cut short is shown as the text it begins with. */
function shownValue(text: string): unknown {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? text : value
  } catch {
    return `${text.replace(/^"/, '').replace(/\\[^\\]*$/, '')}…`
  }
}

function finite(value: number | null): number | null {
  if (value !== null && !Number.isFinite(value)) throw tooLarge()
  return value
}

/** A sum that no number can hold. */
export function tooLarge() {
  return refuse('invalid_request', { message: 'The sum is beyond the largest number. Filter, or ask for less.' })
}
