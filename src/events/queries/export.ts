import { hash } from 'node:crypto'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { createGzip, type Gzip } from 'node:zlib'
import { Pool, type Sql, type Tx } from '../../db/pool.ts'
import type { Clock } from '../../kernel/clock.ts'
import { refuse } from '../../kernel/errors.ts'
import { newId, randomText } from '../../kernel/ids.ts'
import {
  exportFileBytesMax,
  exportFileRowsMax,
  exportLeaseMs,
  exportLookMs,
  exportPageRowsMax,
  exportsAtOnceMax,
} from '../../kernel/limits.ts'
import type { Scope } from '../../tenancy/index.ts'
import type { Log } from '../types.ts'
import {
  claimExport,
  completeExport,
  countOpen,
  type EventExport,
  type HeldExport,
  insertExport,
  releaseExport,
  renewLease,
  saveFile,
  selectExport,
  selectFile,
} from './export-store.ts'
import { readOn } from './list.ts'
import { lastLookedAt, type StoredEvent } from './list-store.ts'
import { selectSeen } from './store.ts'

export type ExportRequest = Pick<EventExport, 'start' | 'end' | 'events' | 'fromPosition'>

/** Asks for an export of all that is applied by now; gives its id. Throws 429 when too many of the scope are open. */
export async function createExport(tx: Tx, scope: Scope, request: ExportRequest): Promise<string> {
  if ((await countOpen(tx, scope)) >= exportsAtOnceMax) {
    throw refuse('rate_limited', {
      retryAfterS: 60,
      message: `At most ${exportsAtOnceMax} exports of a project wait or run.`,
    })
  }
  const id = newId('eexp')
  await insertExport(tx, scope, { id, ...request })
  return id
}

/** The export with this id, if it lies in one of the scopes. */
export function getExport(sql: Sql, scopes: readonly Scope[], id: string) {
  return selectExport(sql, numbersOf(scopes), id)
}

/** A file of a completed export. */
export function getExportFile(
  sql: Sql,
  scopes: readonly Scope[],
  file: { id: string; n: number },
): Promise<Buffer | undefined> {
  return selectFile(sql, numbersOf(scopes), file)
}

function numbersOf(scopes: readonly Scope[]): number[] {
  return scopes.map(({ scopeId }) => scopeId)
}

export interface ExportOptions {
  pool: Pool
  clock: Clock
  log: Log
  /** The object that an event is on the wire; a line of the files. */
  show: (event: StoredEvent) => object
}

/** Writes exports, one at a time, until it is disposed. Any number of processes may: each export is one's at a time. */
export function startExports({ url, ...rest }: { url: string } & Omit<ExportOptions, 'pool'>): AsyncDisposable {
  const { log } = rest
  const pool = new Pool(url, { name: 'exports', max: 1 })
  const options = { pool, ...rest }
  const owner = randomText(16)
  const stop = new AbortController()

  async function run(): Promise<void> {
    while (!stop.signal.aborted) {
      const wrote = await writeNext(options, owner, stop.signal).catch((error: unknown) => {
        log.error({ err: error }, 'an export failed; it goes on from its last file')
        return false
      })
      if (!wrote) await sleep(exportLookMs, undefined, { signal: stop.signal }).catch(() => {})
    }
  }

  const running = run()
  return {
    async [Symbol.asyncDispose]() {
      stop.abort()
      await running
      await pool[Symbol.asyncDispose]()
    },
  }
}

/** Writes the oldest export that waits, if there is one. */
export async function writeNext(options: ExportOptions, owner: string, signal: AbortSignal): Promise<boolean> {
  const held = await claimExport(options.pool, owner)
  if (!held) return false
  try {
    await writeFiles(options, held, signal)
  } finally {
    if (signal.aborted) await releaseExport(options.pool, held)
  }
  return true
}

/** File after file, each in the transaction that moves the export's position: killed at any instant, it goes on from there. */
async function writeFiles({ pool, clock, show }: ExportOptions, held: HeldExport, signal: AbortSignal): Promise<void> {
  while (held.position < held.toPosition) {
    const written = await writeFile({ pool, clock, show }, held, signal)
    if (!written) return
    const { position, file } = written
    if (!(await pool.transaction((tx) => saveFile(tx, held, { position, file })))) return
    held.position = position
    if (file) held.n++
  }
  await completeExport(pool, held)
}

type Written = { position: bigint; file: { rows: number; bytes: Buffer; sha256: Buffer } | null }

/** The next file; null when it was stopped, or the export is no longer ours. */
async function writeFile(
  { pool, clock, show }: Pick<ExportOptions, 'pool' | 'clock' | 'show'>,
  held: HeldExport,
  signal: AbortSignal,
): Promise<Written | null> {
  const scope = { scopeId: held.scopeId } as Scope // the stores look at its number only
  const { start, end, events: names } = held
  const filters = { appId: null, distinctId: null, customerIds: null, start, end, events: names }
  const file = openFile()
  let from = held.position
  let renewedAt = clock.now()
  while (from < held.toPosition && file.rows < exportFileRowsMax && file.bytes < exportFileBytesMax) {
    if (signal.aborted) return null
    const { merged } = await selectSeen(pool, scope)
    const to = lastLookedAt(from, held.toPosition)
    const { events, seen } = await readOn(pool, scope, filters, { from, to, limit: exportPageRowsMax, merged })
    if (events.length > 0)
      await file.add(events.map((event) => `${JSON.stringify(show(event))}\n`).join(''), events.length)
    from = seen
    if (clock.now() - renewedAt < exportLeaseMs / 4) continue
    if (!(await renewLease(pool, held))) return null
    renewedAt = clock.now()
  }
  return { position: from, file: await file.end() }
}

/** A gzip member that grows in memory. */
function openFile() {
  const gzip: Gzip = createGzip()
  const parts: Buffer[] = []
  const file = {
    rows: 0,
    bytes: 0,
    async add(text: string, rows: number): Promise<void> {
      file.rows += rows
      if (!gzip.write(text)) await once(gzip, 'drain')
    },
    async end(): Promise<Written['file']> {
      gzip.end()
      await once(gzip, 'end')
      if (file.rows === 0) return null
      const bytes = Buffer.concat(parts)
      return { rows: file.rows, bytes, sha256: hash('sha256', bytes, 'buffer') }
    },
  }
  gzip.on('data', (part: Buffer) => {
    parts.push(part)
    file.bytes += part.length
  })
  return file
}
