import { type CleanedWhere, type CustomAdapter, createAdapterFactory } from 'better-auth/adapters'
import { APIError } from 'better-auth/api'
import { type Sql, sqlState } from '../db/pool.ts'
import { assert } from '../kernel/assert.ts'
import { addressOf, emailOf } from './address.ts'
import { hashToken } from './sessions.ts'

type Row = Record<string, unknown>

/** What the library may touch, and nothing else: names go into statements as text. */
const tables = {
  users: ['id', 'name', 'email', 'email_verified', 'image', 'created_at', 'updated_at'],
  user_credential: ['id', 'user_id', 'provider_id', 'account_id', 'password', 'created_at', 'updated_at'],
  user_session: ['id', 'user_id', 'token', 'expires_at', 'ip_address', 'user_agent', 'created_at', 'updated_at'],
  user_verification: ['id', 'identifier', 'value', 'expires_at', 'created_at', 'updated_at'],
} as const satisfies Record<string, readonly string[]>

/**
 * The library's storage: our tables through our pool. Session tokens are stored as their hash only. Without a transaction
 * around several statements: it would hold a connection while a password is hashed, and what a crash leaves half done the
 * person's next try completes.
 */
export function authAdapter(sql: Sql) {
  return createAdapterFactory({
    config: { adapterId: 'turnpike', supportsJSON: false, transaction: false },
    adapter: () => operations(failingInItsWords(sql)),
  })
}

/** The library hides errors that are not its own. Of two sign-ups of one address, 403 makes the later one like any other. */
function failingInItsWords(sql: Sql): Sql {
  return {
    query: <Row extends object>(text: string, values?: unknown[]) =>
      sql.query<Row>(text, values).catch((cause: unknown) => {
        throw new APIError(sqlState(cause) === uniqueViolation ? 'FORBIDDEN' : 'INTERNAL_SERVER_ERROR', { cause })
      }),
  }
}

const uniqueViolation = '23505'

function operations(sql: Sql): CustomAdapter {
  const run = async (text: string, values: unknown[], model: string) =>
    (await sql.query<Row>(text, values)).map((row) => shown(model, row))

  return {
    async create<T extends Row>({ model, data }: { model: string; data: T }) {
      const row = stored(model, data)
      const columns = Object.keys(row)
      const places = columns.map((_, n) => `$${n + 1}`)
      const text = `insert into ${table(model)} (${columns.map(columnOf(model)).join(', ')}) values (${places.join(', ')})`
      await sql.query(text, Object.values(row))
      return data
    },
    async findOne<T>({ model, where }: { model: string; where: CleanedWhere[] }) {
      const { text, values } = condition(model, where)
      const rows = await run(`select ${all(model)} from ${table(model)} where ${text} limit 1`, values, model)
      return (rows[0] ?? null) as T | null // as its schema says
    },
    async findMany<T>({
      model,
      where = [],
      limit,
    }: {
      model: string
      where?: CleanedWhere[] | undefined
      limit: number
    }) {
      const { text, values } = condition(model, where)
      const end = `limit ${Number(limit)}`
      return (await run(`select ${all(model)} from ${table(model)} where ${text} ${end}`, values, model)) as T[] // as above
    },
    async update<T>({ model, where, update }: { model: string; where: CleanedWhere[]; update: T }) {
      const { text, values } = change(model, where, update as Row) // a row's columns
      return ((await run(`${text} returning ${all(model)}`, values, model))[0] ?? null) as T | null // as above
    },
    async updateMany({ model, where, update }) {
      const { text, values } = change(model, where, update)
      return (await sql.query(`${text} returning 1`, values)).length
    },
    async delete({ model, where }) {
      const { text, values } = condition(model, where)
      await sql.query(`delete from ${table(model)} where ${text}`, values)
    },
    async deleteMany({ model, where }) {
      const { text, values } = condition(model, where)
      return (await sql.query(`delete from ${table(model)} where ${text} returning 1`, values)).length
    },
    /** Of two that consume one row, one gets it. */
    async consumeOne<T>({ model, where }: { model: string; where: CleanedWhere[] }) {
      const { text, values } = condition(model, where)
      const rows = await run(`delete from ${table(model)} where ${text} returning ${all(model)}`, values, model)
      return (rows[0] ?? null) as T | null // as above
    },
    async count({ model, where = [] }) {
      const { text, values } = condition(model, where)
      return (await sql.query(`select 1 from ${table(model)} where ${text}`, values)).length
    },
  }
}

function change(model: string, where: CleanedWhere[], update: Row) {
  const row = stored(model, update)
  const columns = Object.keys(row).map(columnOf(model))
  const { text, values } = condition(model, where, columns.length)
  const set = columns.map((column, n) => `${column} = $${n + 1}`).join(', ')
  return { text: `update ${table(model)} set ${set} where ${text}`, values: [...Object.values(row), ...values] }
}

const operators = { eq: '=', lt: '<', lte: '<=', gt: '>', gte: '>=', in: '= any' } as const

function condition(model: string, where: CleanedWhere[], before = 0): { text: string; values: unknown[] } {
  const parts = where.map(({ field, operator = 'eq', connector }, n) => {
    assert(connector === 'AND' && operator in operators, `the library asked for ${operator} ${connector}`)
    return `${columnOf(model)(field)} ${operators[operator as keyof typeof operators]} ($${before + n + 1})` // asserted
  })
  return {
    text: parts.length === 0 ? 'true' : parts.join(' and '),
    values: where.map(({ field, value }) => storedValue(model, field, value)),
  }
}

function stored(model: string, row: Row): Row {
  return Object.fromEntries(Object.entries(row).map(([column, value]) => [column, storedValue(model, column, value)]))
}

function storedValue(model: string, column: string, value: unknown): unknown {
  if (model === 'user_session' && column === 'token') return hashToken(String(value))
  return model === 'users' && column === 'email' ? emailOf(String(value)) : value
}

function shown(model: string, row: Row): Row {
  return model === 'users' ? { ...row, email: addressOf(String(row.email)) } : row
}

function table(model: string): keyof typeof tables {
  assert(Object.hasOwn(tables, model), `the library asked for ${model}`)
  return model as keyof typeof tables // asserted
}

function columnOf(model: string) {
  const columns: readonly string[] = tables[table(model)]
  return (column: string): string => {
    assert(columns.includes(column), `the library asked for ${model}.${column}`)
    return column
  }
}

function all(model: string): string {
  return tables[table(model)].join(', ')
}
