import pg from 'pg'
import { refuse } from '../kernel/errors.ts'
import { giveWay } from './give-way.ts'

// int8 is read as bigint everywhere: units, positions and milliseconds never pass through a double.
pg.types.setTypeParser(pg.types.builtins.INT8, (text) => BigInt(text))

/**
 * Runs one statement and gives its rows as objects. Implemented by the pool and by an open transaction. With a name, its plan
 * is kept by the connection: planning one over many partitions costs more than running it.
 */
export interface Sql {
  query<Row extends object>(text: string, values?: unknown[], name?: string): Promise<Row[]>
}

/** An open transaction. */
export interface Tx extends Sql {
  /** The connection, for statements that need `rowMode: 'array'`, a name, or pipelining. */
  readonly client: pg.PoolClient
}

export interface PoolOptions {
  /** Shown in pg_stat_activity. */
  name: string
  max: number
  /** Sends statements without waiting for the answer of the one before. */
  pipeline?: boolean
  /** Run-time parameters of the session, such as `{ enable_seqscan: 'off' }`. */
  settings?: Record<string, string>
  /** Its server processes give way to all others. For a database on this machine only, and for what only reads. */
  givesWay?: boolean
}

/** A pool of connections for one purpose, so that one kind of work never waits for another's connections. */
export class Pool implements Sql, AsyncDisposable {
  readonly #pool: pg.Pool

  constructor(url: string, { name, max, pipeline = false, settings = {}, givesWay = false }: PoolOptions) {
    const parameters = { statement_timeout: '30s', idle_in_transaction_session_timeout: '5s', jit: 'off', ...settings }
    this.#pool = new pg.Pool({
      connectionString: url,
      application_name: `turnpike ${name}`,
      max,
      pipeline,
      connectionTimeoutMillis: 2000,
      idleTimeoutMillis: 60_000,
      options: Object.entries(parameters)
        .map(([key, value]) => `-c ${key}=${value.replaceAll(' ', '\\ ')}`)
        .join(' '),
    })
    // A broken idle connection is replaced by the pool; whoever holds a broken one gets the error from its query. One that
    // breaks while it is handed over is nobody's for an instant, and an error that nobody hears would end the process.
    this.#pool.on('error', () => {})
    this.#pool.on('connect', (client) => client.on('error', () => {}))
    if (givesWay) this.#pool.on('connect', (client) => void giveWay(processIdOf(client)))
  }

  async query<Row extends object>(text: string, values: unknown[] = [], name?: string): Promise<Row[]> {
    const result = await this.#pool.query<Row>(name === undefined ? { text, values } : { name, text, values })
    return result.rows
  }

  /** Commits when `work` resolves, rolls back when it throws. */
  async transaction<T>(work: (tx: Tx) => Promise<T>): Promise<T> {
    return this.#lend(async (client, spoil) => {
      await client.query('begin')
      try {
        const value = await work(asTx(client))
        await client.query('commit')
        return value
      } catch (error) {
        // What is told is what failed first, not that a lost connection can't roll back either.
        await client.query('rollback').catch(spoil)
        throw error
      }
    })
  }

  /** Lends one connection; a connection whose work failed in an unknown state is not used again. */
  connected<T>(work: (client: pg.PoolClient) => Promise<T>): Promise<T> {
    return this.#lend(work)
  }

  async #lend<T>(work: (client: pg.PoolClient, spoil: (error: Error) => void) => Promise<T>): Promise<T> {
    const client = await this.#pool.connect()
    let broken: Error | undefined
    const onError = (error: Error) => {
      broken = error
    }
    client.on('error', onError)
    try {
      return await work(client, onError)
    } catch (error) {
      if (isConnectionLoss(error)) broken = error as Error
      throw error
    } finally {
      client.off('error', onError)
      client.release(broken)
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#pool.end()
  }
}

export function asTx(client: pg.PoolClient): Tx {
  return {
    client,
    async query<Row extends object>(text: string, values: unknown[] = [], name?: string): Promise<Row[]> {
      const result = await client.query<Row>(name === undefined ? { text, values } : { name, text, values })
      return result.rows
    },
  }
}

/** Of the server process behind a connection. */
function processIdOf(client: pg.PoolClient): number {
  return (client as unknown as { processID: number }).processID // not in the driver's types
}

/**
 * Work of one transaction whose statements are sent one behind the other. Nothing of it is under way any more when an error is
 * thrown; of several errors it is the one that caused the others, not "transaction is aborted".
 */
export async function together<Result>(work: readonly Promise<Result>[]): Promise<Result[]> {
  const results = await Promise.allSettled(work)
  const errors = results.flatMap((result) => (result.status === 'rejected' ? [result.reason as unknown] : []))
  if (errors.length > 0) throw errors.find((error) => sqlState(error) !== '25P02') ?? errors[0]
  return results.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : []))
}

/** The five-character SQLSTATE of a PostgreSQL error, or undefined. */
export function sqlState(error: unknown): string | undefined {
  return error instanceof pg.DatabaseError ? error.code : undefined
}

/** The connection is gone or the server is going: nothing is known about a COMMIT that was under way. */
export function isConnectionLoss(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  const state = sqlState(error)
  // 25P03 and 25P04 end the session too: a process that was held up in a transaction finds it gone.
  if (state !== undefined) return /^(08|57P|25P0[34])/.test(state)
  const { code = '' } = error as NodeJS.ErrnoException // of a socket, when it is one
  return lostCodes.has(code) || lostWords.test(error.message)
}

/** Of sockets and of the name service, when a remote database moves. */
const lostCodes = new Set(
  'ECONNREFUSED ECONNRESET ECONNABORTED EPIPE ENOENT EAGAIN ETIMEDOUT EHOSTUNREACH ENETUNREACH ENOTFOUND EAI_AGAIN'.split(
    ' ',
  ),
)
/** Of pg and its pool, which give these no code. */
const lostWords =
  /connection (terminated|timeout|ended)|timeout expired|timeout exceeded when trying to connect|Client (has encountered|was closed|is closed)/i

/** Worth another try later: lost connections, locks, serialisation, resources, shutdown. */
export function isRetryable(error: unknown): boolean {
  const state = sqlState(error)
  if (state === undefined) return isConnectionLoss(error)
  return /^(08|25P0[34]|40|53|57|55P03|58)/.test(state)
}

/** Turns a retryable database error into the 503 that callers retry; gives anything else back. */
export function unavailable(error: unknown, code: 'service_unavailable' | 'billing_unavailable'): unknown {
  return isRetryable(error) ? refuse(code, { retryAfterS: 1, cause: error }) : error
}
