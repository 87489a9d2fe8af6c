import pg from 'pg'
import { sqlState } from '../pool.ts'
import type { Postmaster } from './postmaster.ts'
import { isAlive } from './process.ts'

/** Any fixed number: whoever holds this lock on the database `postgres` owns the embedded server. */
const lockKey = 7_210_002

/** A connection that owns the server for as long as it lives, or the process that owns it instead. */
export type Ownership =
  | { kind: 'owner'; connection: pg.Client }
  | { kind: 'taken'; processId: number; isAlive: boolean }

/** Where pg finds a server on a private socket. */
export function socketUrl(socketDirectory: string, database: string): string {
  return `postgresql://turnpike@localhost/${database}?host=${encodeURIComponent(socketDirectory)}&port=5432`
}

/** Tries to become the owner. A free lock on a running server means that its owner was killed. Throws what connecting throws. */
export async function claim({ socketDirectory }: Postmaster): Promise<Ownership> {
  const connection = new pg.Client({
    connectionString: socketUrl(socketDirectory, 'postgres'),
    application_name: `turnpike owner ${process.pid}`,
    connectionTimeoutMillis: 5000,
    // Whatever PGSSLMODE says in our environment: there is no TLS on a socket.
    ssl: false,
  })
  // Told by `end` as well.
  connection.on('error', () => {})
  await connection.connect()
  try {
    const locked = await connection.query<{ locked: boolean }>('select pg_try_advisory_lock($1) as locked', [lockKey])
    if (locked.rows[0]?.locked) {
      await ensureDatabase(connection)
      return { kind: 'owner', connection }
    }
    const processId = await holder(connection)
    await connection.end()
    return { kind: 'taken', processId, isAlive: isAlive(processId) }
  } catch (error) {
    await connection.end()
    throw error
  }
}

/** Whether a server answers there, be it with a refusal. */
export async function answers(postmaster: Postmaster): Promise<boolean> {
  try {
    const ownership = await claim(postmaster)
    if (ownership.kind === 'owner') await ownership.connection.end()
    return true
  } catch (error) {
    return sqlState(error) !== undefined
  }
}

/** The process id that the holder of the lock carries in its name; 0 when it has just gone. */
async function holder(connection: pg.Client): Promise<number> {
  const holders = await connection.query<{ application_name: string }>(
    `select activity.application_name
     from pg_locks lock
     join pg_stat_activity activity on activity.pid = lock.pid
     where lock.locktype = 'advisory' and lock.classid = 0 and lock.objid = $1 and lock.granted`,
    [lockKey],
  )
  return Number(/\d+$/.exec(holders.rows[0]?.application_name ?? '0')?.[0])
}

async function ensureDatabase(connection: pg.Client): Promise<void> {
  const found = await connection.query(`select 1 from pg_database where datname = 'turnpike'`)
  if (found.rows.length === 0) await connection.query('create database turnpike')
}
