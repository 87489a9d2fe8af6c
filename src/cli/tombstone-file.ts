import { open } from 'node:fs/promises'
import type { Tombstone } from '../customers/index.ts'
import { tombstonesPerSlice } from '../kernel/limits.ts'
import { StartError } from '../kernel/start-error.ts'

/** A line each, between one that says what it is and one that says how many: a file that was cut off is seen. */
const head = 'turnpike tombstones 1'
const line =
  /^(?<projectId>\S{1,200})\t(?<environment>test|live)\t(?<hash>[0-9a-f]{64})\t(?<deletedAt>\d{4}-\S{15,25}Z)$/

export async function* tombstoneLines(pages: AsyncIterable<Tombstone[]>): AsyncIterable<string> {
  let count = 0
  yield `${head}\n`
  for await (const page of pages) {
    count += page.length
    yield page.map((each) => `${each.projectId}\t${each.environment}\t${each.hash}\t${each.deletedAt}\n`).join('')
  }
  yield `end ${count}\n`
}

/** Slices of what such a file holds. Throws StartError for another file, and for one that is not whole: read it once before. */
export async function* readTombstones(path: string): AsyncIterable<Tombstone[]> {
  await using file = await open(path).catch((error: unknown) => {
    throw new StartError(`${path} cannot be read: ${(error as Error).message}`) // of the file system
  })
  if (!(await file.stat()).isFile()) throw new StartError(`${path} is no file`)
  let [count, isBegun, isEnded] = [0, false, false]
  let slice: Tombstone[] = []
  for await (const text of file.readLines()) {
    if (isEnded) throw damaged(path)
    if (!isBegun && text !== head) throw new StartError(`${path} is no list of tombstones`)
    if (isBegun && text === `end ${count}`) isEnded = true
    else if (isBegun) {
      slice.push(tombstoneOf(text, path))
      count++
    }
    isBegun = true
    if (slice.length === tombstonesPerSlice) {
      yield slice
      slice = []
    }
  }
  if (!isEnded) throw damaged(path)
  if (slice.length > 0) yield slice
}

function tombstoneOf(text: string, path: string): Tombstone {
  const { projectId, environment, hash, deletedAt } = line.exec(text)?.groups ?? {}
  if (!projectId || !hash || !deletedAt || Number.isNaN(Date.parse(deletedAt))) throw damaged(path)
  return { projectId, environment: environment === 'test' ? 'test' : 'live', hash, deletedAt }
}

function damaged(path: string): StartError {
  return new StartError(`${path} is damaged or was not written whole`)
}
