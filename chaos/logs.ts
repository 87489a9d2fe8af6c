import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

/** pino's number of `error`; `fatal` is above it. */
const errorLevel = 50
const wordsMax = 200

/** What the processes logged as errors, which operators are woken for: each once, with how often it was said. */
export function errorsIn(folder: string): string[] {
  const counts = new Map<string, number>()
  for (const file of globSync('*.log', { cwd: folder })) {
    for (const text of readFileSync(join(folder, file), 'utf8').split('\n')) {
      // A line may be cut short by the end of its process.
      const line = /^\{"level":(\d+).*\}$/.exec(text)
      if (Number(line?.[1]) >= errorLevel) add(counts, `${file}: ${wordsOf(text)}`)
    }
  }
  return [...counts].map(([words, count]) => `${count} times in ${words}`)
}

function wordsOf(text: string): string {
  const { msg, err } = JSON.parse(text) as { msg?: string; err?: { message?: string } } // a line of the service's log
  return [msg, err?.message].filter(Boolean).join(': ').slice(0, wordsMax)
}

function add(counts: Map<string, number>, words: string): void {
  counts.set(words, (counts.get(words) ?? 0) + 1)
}
