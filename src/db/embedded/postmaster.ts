import { type ChildProcess, spawn } from 'node:child_process'
import {
  chownSync,
  closeSync,
  fchownSync,
  mkdirSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeSync,
} from 'node:fs'
import { totalmem } from 'node:os'
import { basename, join } from 'node:path'
import { systemClock } from '../../kernel/clock.ts'
import { serverLogBytesMax } from '../../kernel/limits.ts'
import type { Account } from './account.ts'
import type { Cluster } from './cluster.ts'
import { commandOf, isAlive } from './process.ts'

/** A PostgreSQL, as its `postmaster.pid` tells. */
export interface Postmaster {
  processId: number
  socketDirectory: string
  /** False: it was killed, and its process id may meanwhile belong to another program. */
  runs: boolean
  /** Whether it takes connections; otherwise it is starting, recovering or stopping. */
  ready: boolean
}

const bufferMbMin = 128
const bufferMbMax = 1024

/** Nothing of durability is ever switched off; the rest is what PostgreSQL's defaults are too small or too chatty for. */
const settings = {
  fsync: 'on',
  full_page_writes: 'on',
  synchronous_commit: 'on',
  listen_addresses: '',
  port: '5432',
  unix_socket_permissions: '0700',
  max_connections: '200',
  shared_buffers: `${bufferMb()}MB`,
  // Most writes under load are the first to touch their page after a checkpoint, and write it whole.
  max_wal_size: '4GB',
  jit: 'off',
  timezone: 'UTC',
  log_timezone: 'UTC',
  // Errors of statements are the caller's to log; here their texts and values would be customers' data.
  log_min_messages: 'log',
  log_min_error_statement: 'panic',
  log_error_verbosity: 'terse',
  log_checkpoints: 'off',
}

/** A sixteenth of the memory that is ours; PostgreSQL takes of it only what it comes to use. */
function bufferMb(): number {
  const bytes = Math.min(totalmem(), process.constrainedMemory() || Number.POSITIVE_INFINITY)
  return Math.min(Math.max(Math.floor(bytes / 16 / 2 ** 20), bufferMbMin), bufferMbMax)
}

/** What `postmaster.pid` says, and whether its process is a PostgreSQL on this folder; undefined without such a file. */
export function findPostmaster(data: string): Postmaster | undefined {
  const path = join(data, 'postmaster.pid')
  const text = readIfThere(path)
  if (text === undefined) return undefined
  const [pid = '', , , , socketDirectory = '', , , status = ''] = text.split('\n')
  const processId = Number(pid)
  // It is empty for an instant while it is being made.
  const isNew = (statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0) > systemClock.now() - 5000
  const runs = processId > 0 ? isPostmaster(processId, data) : isNew
  return { processId, socketDirectory, runs, ready: runs && status.trim() === 'ready' }
}

/**
 * Removes the `postmaster.pid` of a server that was killed. Judging and removing happen without yielding, so that another
 * start's fresh file is not taken for the old one.
 */
export function removeLeft(data: string): void {
  if (findPostmaster(data)?.runs === false) rmSync(join(data, 'postmaster.pid'), { force: true })
}

/** In doubt yes: PostgreSQL itself then refuses to run beside another. */
function isPostmaster(processId: number, data: string): boolean {
  if (!isAlive(processId)) return false
  const command = commandOf(processId)
  if (command === undefined) return true
  const ofProcess = command[command.indexOf('-D') + 1]
  return basename(command[0] ?? '') === 'postgres' && (ofProcess === undefined || isSameFolder(ofProcess, data))
}

function isSameFolder(a: string, b: string): boolean {
  try {
    return statSync(a).ino === statSync(b).ino && statSync(a).dev === statSync(b).dev
  } catch {
    // The folder was moved while in use: can't be told apart.
    return true
  }
}

/** Starts PostgreSQL in a session of its own: Ctrl-C in our terminal and our own death do not reach it. */
export function launch({ home, data, account, binaries }: Cluster, socketDirectory: string): ChildProcess {
  mkdirSync(socketDirectory, { recursive: true, mode: 0o700 })
  if (account) chownSync(socketDirectory, account.uid, account.gid)
  const values = { ...settings, unix_socket_directories: `"${socketDirectory.replaceAll('"', '""')}"` }
  const options = Object.entries(values).flatMap(([name, value]) => ['-c', `${name}=${value}`])
  const log = openLog(home, account)
  try {
    const child = spawn(join(binaries.directory, 'bin/postgres'), ['-D', data, ...options], {
      ...account,
      cwd: home,
      env: { LC_ALL: 'C', TZ: 'UTC' },
      detached: true,
      stdio: ['ignore', log, log],
    })
    // A program that can't be started ends like one that failed at once.
    child.on('error', () => {})
    child.unref()
    return child
  } finally {
    closeSync(log)
  }
}

/** Why the server that was launched last has ended, in its own words. */
export function lastWords(home: string): string {
  const log = readIfThere(join(home, 'server.log')) ?? ''
  const lines = log.slice(log.lastIndexOf(launchMark)).split('\n')
  const line = lines.findLast((text) => /(FATAL|PANIC|ERROR|could not)/.test(text)) ?? 'it said nothing'
  return line.replace(/^.*?(FATAL|PANIC|ERROR): +/, '')
}

const launchMark = '--- launched by Turnpike, process'

/** A file rather than a pipe: the database outlives us, and a pipe would not. */
function openLog(home: string, account: Account | undefined): number {
  const path = join(home, 'server.log')
  const log = openSync(path, 'a', 0o600)
  if (account) fchownSync(log, account.uid, account.gid)
  if (statSync(path).size > serverLogBytesMax) truncateSync(path)
  writeSync(log, `${launchMark} ${process.pid}\n`)
  return log
}

function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined // what readFileSync throws
    throw error
  }
}
