import { closeSync, createReadStream, openSync, writeSync } from 'node:fs'
import { createInterface } from 'node:readline'

/**
 * What a load process did, on disk before and after each request: the proof reads nothing else. A line is
 * `mark TAB milliseconds TAB client TAB turn TAB detail`, the marks being `>` about to send, `!` no final answer, `<` one.
 * What a turn holds follows from seed, client and turn.
 */
export interface Line {
  mark: '>' | '!' | '<'
  client: number
  turn: number
  detail: string
}

export interface Answer {
  status: number
  body: unknown
}

export interface RecordFile {
  write(line: Line): void
  close(): void
}

export function openRecord(path: string): RecordFile {
  const file = openSync(path, 'a')
  const began = performance.now()
  return {
    write({ mark, client, turn, detail }) {
      writeSync(file, `${[mark, Math.round(performance.now() - began), client, turn, detail].join('\t')}\n`)
    },
    close: () => closeSync(file),
  }
}

export async function* readRecord(path: string): AsyncGenerator<Line> {
  for await (const text of createInterface(createReadStream(path))) {
    const [mark, , client, turn, ...detail] = text.split('\t')
    if (mark !== '>' && mark !== '!' && mark !== '<') throw new Error(`${path}: not a line of a record: ${text}`)
    yield { mark, client: Number(client), turn: Number(turn), detail: detail.join('\t') }
  }
}

/** As the detail of a `<` line. JSON holds no tabs and no line ends. */
export function writeAnswer({ status, body }: Answer): string {
  return `${status} ${JSON.stringify(body)}`
}

export function readAnswer(detail: string): Answer {
  const space = detail.indexOf(' ')
  return { status: Number(detail.slice(0, space)), body: JSON.parse(detail.slice(space + 1)) }
}
