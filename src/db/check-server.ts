import { must } from '../kernel/assert.ts'
import { StartError } from '../kernel/start-error.ts'
import type { Sql } from './pool.ts'

interface Server {
  version: string
  version_number: number
  fsync: string
  synchronous_commit: string
  encoding: string
}

/** Refuses a server that is too old, or that would acknowledge what it could lose. Throws StartError, one line each. */
export async function checkServer(sql: Sql): Promise<void> {
  const objection = await serverObjection(sql)
  if (objection) throw new StartError(`DATABASE_URL: ${objection}`)
}

/** What speaks against the server, if anything. Throws StartError when it does not answer. */
export async function serverObjection(sql: Sql): Promise<string | undefined> {
  const server = await ask(sql)
  return server && objectionTo(server)
}

export interface ServerFacts {
  version: string
  /** By its clock, when it answered. */
  now: Date
  connections: number
  connectionsMax: number
}

export async function serverFacts(sql: Sql): Promise<ServerFacts> {
  const [row] = await sql.query<{ version: string; now: Date; connections: number; connections_max: number }>(
    `select current_setting('server_version') as version,
       clock_timestamp() as now,
       (select count(*)::int from pg_stat_activity where backend_type = 'client backend') as connections,
       current_setting('max_connections')::int as connections_max`,
  )
  const { version, now, connections, connections_max } = must(row, 'a row without a table is always there')
  return { version, now, connections, connectionsMax: connections_max }
}

async function ask(sql: Sql): Promise<Server | undefined> {
  const asked = sql.query<Server>(
    `select current_setting('server_version') as version,
            current_setting('server_version_num')::int as version_number,
            current_setting('fsync') as fsync,
            current_setting('synchronous_commit') as synchronous_commit,
            pg_encoding_to_char(encoding) as encoding
     from pg_database
     where datname = current_database()`,
  )
  try {
    return (await asked)[0]
  } catch (cause) {
    const { message, code } = cause as NodeJS.ErrnoException // what pg and sockets reject with
    throw new StartError(`DATABASE_URL: the database does not answer: ${message || code}`, { cause })
  }
}

/** What speaks against a server; undefined when nothing does. */
export function objectionTo(server: Server): string | undefined {
  if (server.version_number < 150_000) return `PostgreSQL ${server.version} is too old, 15 or newer is needed`
  if (server.fsync === 'off') return 'fsync is off: acknowledged events and units could be lost'
  if (server.synchronous_commit === 'off')
    return 'synchronous_commit is off: acknowledged events and units could be lost'
  if (server.encoding !== 'UTF8') return `the encoding of the database is ${server.encoding}, UTF8 is needed`
  return undefined
}
