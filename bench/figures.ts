import { type ServerName, serverNames } from './cases.ts'
import type { CaseName } from './options.ts'

/** One server in one case: medians over its rounds. CPU is of all its processes, the database included. */
export interface Figures {
  rps: number
  p50_ms: number
  p99_ms: number
  cpu_ms: number
  node_cpu_ms: number
  postgres_cpu_ms: number
  /** Of the generator, which is in none of the others; and how much of one core it took. */
  generator_cpu_ms: number
  generator_cores: number
}

/** What becomes of events after their answer. */
export interface LaneFigures {
  /** Events not applied yet when the last answer came, and how long the lane then took for them. */
  backlog: number
  drain_s: number
  /** From the first request until nothing waited, and while nothing came in any more. */
  processed_per_s: number
  drained_per_s: number | null
  /** CPU of all processes until the last event was applied, per request. */
  cpu_ms_processed: number
}

/** A round at a fixed rate. */
export interface PacedFigures {
  rps: number
  p50_ms: number
  p99_ms: number
  /** Age of the oldest event that was not applied yet, 99 % of the looks at it. */
  lag_p99_ms?: number
}

export interface CaseFigures extends Figures {
  name: CaseName
  ratio_echo: number
  ratio_naive: number
  errors: number
  events_per_s?: number
  lane?: LaneFigures
  paced: PacedFigures
  echo: Figures
  naive: Figures
  rounds: Record<ServerName, number[]>
}

export function medianOf(rounds: Figures[]): Figures {
  const of = (key: keyof Figures) => median(rounds.map((round) => round[key]))
  return {
    rps: of('rps'),
    p50_ms: of('p50_ms'),
    p99_ms: of('p99_ms'),
    cpu_ms: of('cpu_ms'),
    node_cpu_ms: of('node_cpu_ms'),
    postgres_cpu_ms: of('postgres_cpu_ms'),
    generator_cpu_ms: of('generator_cpu_ms'),
    generator_cores: of('generator_cores'),
  }
}

export function median(values: number[]): number {
  const sorted = values.toSorted((a, b) => a - b)
  const middle = sorted.length / 2
  const [low = 0, high = 0] = [sorted[Math.ceil(middle) - 1], sorted[Math.floor(middle)]]
  return rounded((low + high) / 2)
}

/** Four significant digits: more than rounds repeat. */
export function rounded(value: number): number {
  return Number(value.toPrecision(4))
}

/** The table people read. */
export function table(cases: CaseFigures[]): string {
  const head = [
    'case',
    'server',
    'requests/s',
    'events/s',
    'p50 ms',
    'p99 ms',
    'CPU ms',
    '= node',
    '+ postgres',
    'generator',
    'x echo',
    'x naive',
  ]
  const rows = cases.flatMap((figures) => serverNames.toReversed().map((server) => rowOf(figures, server)))
  const widths = head.map((title, column) => Math.max(title.length, ...rows.map((row) => row[column]?.length ?? 0)))
  const line = (cells: string[]) =>
    cells
      .map((cell, column) => (column < 2 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0)))
      .join('  ')
  return [line(head), line(widths.map((width) => '-'.repeat(width))), ...rows.map(line)].join('\n')
}

function rowOf(figures: CaseFigures, server: ServerName): string[] {
  const own = server === 'turnpike' ? figures : figures[server]
  const perRequest = figures.events_per_s === undefined ? undefined : figures.events_per_s / figures.rps
  return [
    server === 'turnpike' ? figures.name : '',
    server,
    whole(own.rps),
    perRequest === undefined ? '' : whole(own.rps * perRequest),
    own.p50_ms.toFixed(1),
    own.p99_ms.toFixed(1),
    own.cpu_ms.toFixed(3),
    own.node_cpu_ms.toFixed(3),
    own.postgres_cpu_ms.toFixed(3),
    own.generator_cpu_ms.toFixed(3),
    server === 'turnpike' ? figures.ratio_echo.toFixed(2) : '',
    server === 'turnpike' ? figures.ratio_naive.toFixed(2) : '',
  ]
}

/** What the table has no column for, a line each. */
export function notes(cases: CaseFigures[]): string[] {
  return cases.flatMap(({ name, lane, paced }) => {
    const lag = paced.lag_p99_ms === undefined ? '' : `, accept to processed ${paced.lag_p99_ms.toFixed(0)} ms`
    const pace = `${name}: at ${whole(paced.rps)} requests/s p50 ${paced.p50_ms.toFixed(1)} ms, p99 ${paced.p99_ms.toFixed(1)} ms${lag}`
    if (!lane) return [pace]
    const alone = lane.drained_per_s === null ? '' : ` (${whole(lane.drained_per_s)} events/s alone)`
    return [
      pace,
      `${name}: the lane processed ${whole(lane.processed_per_s)} events/s; ${whole(lane.backlog)} were waiting at the end, ` +
        `applied ${lane.drain_s.toFixed(2)} s later${alone}; ${lane.cpu_ms_processed.toFixed(3)} ms CPU a request until all were`,
    ]
  })
}

function whole(value: number): string {
  return Math.round(value).toLocaleString('en-US')
}
