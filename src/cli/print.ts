import type { Writable } from 'node:stream'

/** What a command found. */
export function print(text: string): void {
  process.stdout.write(`${text}\n`)
}

/** What is said beside it, so that the output can be piped. */
export function remark(text: string): void {
  process.stderr.write(`${text}\n`)
}

/** Aligned columns under their names; with `json` one object a line, for programs. */
export function printRows(rows: Record<string, Cell>[], { json }: { json: boolean }): void {
  const [first] = rows
  if (json) for (const row of rows) print(JSON.stringify(row))
  else if (first) for (const line of tableOf(Object.keys(first), rows)) print(line)
  else print('none')
}

type Cell = string | number | boolean | null

function tableOf(names: string[], rows: Record<string, Cell>[]): string[] {
  const lines = [names, ...rows.map((row) => names.map((name) => shown(row[name])))]
  const widths = names.map((_, i) => Math.max(...lines.map((line) => line[i]?.length ?? 0)))
  return lines.map((line) =>
    line
      .map((cell, i) => cell.padEnd(widths[i] ?? 0))
      .join('  ')
      .trimEnd(),
  )
}

/** Control characters of what people named would move the cursor of whoever reads it. */
export function plain(text: string): string {
  return text.replaceAll(/\p{Cc}/gu, '�')
}

function shown(value: Cell | undefined): string {
  return value === null || value === undefined ? '-' : plain(String(value))
}

/** Goes on when nobody reads any more, as after `| head`. */
export function ignoreClosedOutput(output: Writable): void {
  output.on('error', () => {})
}
