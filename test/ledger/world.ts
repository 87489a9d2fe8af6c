import pino from 'pino'
import { Pool } from '../../src/db/pool.ts'
import {
  type AccessAnswer,
  Catalogues,
  type ConsumeAnswer,
  type ConsumeCommand,
  createCheck,
  createConsume,
  createFeature,
  createStanding,
  ensureEntryPartitions,
  type FeatureRecord,
  type Finding,
  type GrantRecord,
  grantUnits,
  ledgerSettings,
  mergeAccounts,
  verifyLedger,
} from '../../src/entitlements/index.ts'
import { ensurePartitions } from '../../src/events/index.ts'
import { systemClock as clock } from '../../src/kernel/clock.ts'
import { Refusal } from '../../src/kernel/errors.ts'
import { randomText } from '../../src/kernel/ids.ts'
import { type AppScope, Directory, type Scope, touchCatalogue } from '../../src/tenancy/index.ts'
import { type TestDatabase, testDatabase } from '../harness/database.ts'
import { testScope } from '../harness/lane.ts'

type Grant = Parameters<typeof grantUnits>[2][number]
type FeatureTerms = Partial<Parameters<typeof createFeature>[2]>

/** What one process has of the ledger: connections, a directory and catalogues of its own. */
export interface Spender extends AsyncDisposable {
  pool: Pool
  catalogues: Catalogues
  consume: (command: Command) => Promise<ConsumeAnswer>
  check: (query: {
    scope: Scope
    distinctId: string
    feature: string
    required: number
    entity?: string
  }) => Promise<AccessAnswer>
  standing: ReturnType<typeof createStanding>
}

export interface Command {
  scope: Scope
  distinctId: string
  quantity: number
  feature?: string
  operationId?: string
  mode?: ConsumeCommand['mode']
  entity?: string | null
}

export interface Ledger extends AsyncDisposable {
  database: TestDatabase
  pool: Pool
  /** `usageUrl` is another way to the same database, for the connections that spend. */
  spender: (usageUrl?: string) => Promise<Spender>
  scope: () => Promise<Scope>
  /** Published; metered unless told otherwise. */
  feature: (scope: Scope, key?: string, terms?: FeatureTerms) => Promise<FeatureRecord>
  /** A customer with one distinct id. */
  customer: (scope: Scope, distinctId: string) => Promise<string>
  grant: (
    scope: Scope,
    customerId: string,
    feature: FeatureRecord,
    allowance: number,
    terms?: Partial<Grant>,
  ) => Promise<GrantRecord>
  /** As an identify joins them: the ids of the source name the target from then on. */
  merge: (
    scope: Scope,
    sourceCustomerId: string,
    targetCustomerId: string,
    through?: Pick<Pool, 'transaction'>,
  ) => Promise<void>
}

const tombstoneKey = Buffer.alloc(32, 7)
const log = pino({ level: 'silent' })
let sources = 0

/** The ledger's verbs over a database of their own, without HTTP. */
export async function openLedger(): Promise<Ledger> {
  const database = await testDatabase()
  const { pool, url } = database
  await ensureEntryPartitions(pool)
  await ensurePartitions(pool)
  await pool.query(`insert into instance (id, sealed_secrets) values (1, '')`)
  return {
    database,
    pool,
    spender: (usageUrl = url) => openSpender(url, usageUrl),
    scope: () => testScope(pool),
    feature: (scope, key = 'exports', terms = {}) =>
      pool.transaction(async (tx) => {
        const made = await createFeature(tx, scope, { key, name: key, type: 'metered', published: true, ...terms })
        await touchCatalogue(tx, scope.scopeId)
        return made
      }),
    async customer({ scopeId }, distinctId) {
      const id = crypto.randomUUID()
      await pool.query('insert into customer (scope_id, id, created_at) values ($1, $2, now())', [scopeId, id])
      await pool.query(
        `insert into customer_alias (scope_id, distinct_id, customer_id, since_pos, first_seen_at) values ($1, $2, $3, 0, now())`,
        [scopeId, distinctId, id],
      )
      return id
    },
    async grant(scope, customerId, feature, allowance, terms = {}) {
      const grant: Grant = {
        ...{ customerId, feature, entityId: null, allowance: BigInt(allowance), unlimited: false, interval: null },
        ...{ rollover: null, startsAt: null, expiresAt: null, note: null },
        source: { origin: 'manual', ref: `test:${++sources}`, rank: 0, productId: null },
        ...terms,
      }
      const [made] = await pool.transaction((tx) => grantUnits(tx, scope, [grant]))
      if (!made) throw new Error('no grant was made')
      return made
    },
    merge: (scope, source, target, through: Pick<Pool, 'transaction'> = pool) =>
      through.transaction(async (tx) => {
        const { scopeId } = scope
        await tx.query(
          'select id from customer where scope_id = $1 and id = any($2::uuid[]) order by id for no key update',
          [scopeId, [source, target]],
        )
        await tx.query('update customer set merged_into = $3 where scope_id = $1 and id = $2', [
          scopeId,
          source,
          target,
        ])
        await tx.query('update customer_alias set customer_id = $3 where scope_id = $1 and customer_id = $2', [
          scopeId,
          source,
          target,
        ])
        await tx.query(
          `insert into merge_journal (scope_id, customer_id, source_customer_id, source_distinct_id, target_distinct_id, pos, status)
           values ($1, $3, $2, '', '', 0, 'merged')`,
          [scopeId, source, target],
        )
        await mergeAccounts(tx, scope, [{ sourceCustomerId: source, targetCustomerId: target }])
      }),
    [Symbol.asyncDispose]: () => database[Symbol.asyncDispose](),
  }
}

async function openSpender(url: string, usageUrl: string): Promise<Spender> {
  await using stack = new AsyncDisposableStack()
  const pool = stack.use(new Pool(url, { name: 'service', max: 3 }))
  const directory = stack.use(await Directory.open({ pool, url, clock, log }))
  const catalogues = new Catalogues(pool, directory)
  const hot = (name: string, max: number) =>
    stack.use(new Pool(url, { name, max, pipeline: true, settings: ledgerSettings }))
  const reads = { pool: hot('access', 2), catalogues, tombstoneKey, clock }
  const usage = (name: string, max: number) =>
    stack.use(new Pool(usageUrl, { name, max, pipeline: true, settings: ledgerSettings }))
  const spending = {
    pool: usage('usage', 2),
    holdupPool: usage('held up', 4),
    catalogues,
    directory,
    tombstoneKey,
    clock,
  }
  const [consume, check] = [createConsume(spending), createCheck(reads)]
  const everything = stack.move()
  return {
    pool: spending.pool,
    catalogues,
    consume: ({ scope, distinctId, quantity, feature = 'exports', operationId, mode = 'consume', entity = null }) =>
      consume({
        ...{ scope: appOf(scope), distinctId, featureKey: feature, mode, entityId: entity },
        operationId: operationId ?? randomText(16),
        quantity: BigInt(quantity),
      }),
    check: ({ scope, distinctId, feature, required, entity }) =>
      check({
        ...{ scope: appOf(scope), distinctId, featureKey: feature },
        required: BigInt(required),
        entityId: entity ?? null,
      }),
    standing: createStanding(reads),
    [Symbol.asyncDispose]: () => everything.disposeAsync(),
  }
}

function appOf(scope: Scope): AppScope {
  return { ...scope, keyId: 'key_test', appId: 'app_test', appName: 'Test', platform: 'ios' }
}

/** The answer, asked for again until there is one, as apps do: 503 says nothing about what happened. */
export async function untilAnswered(consume: Spender['consume'], command: Command): Promise<ConsumeAnswer> {
  const named = { operationId: randomText(16), ...command }
  for (;;) {
    try {
      return await consume(named)
    } catch (error) {
      if (!(error instanceof Refusal) || error.code !== 'billing_unavailable') throw error
    }
  }
}

/** What is wrong with the scope's ledger, recomputed from its entries. */
export async function findings(pool: Pool, { scopeId }: Scope): Promise<Finding[]> {
  const found: Finding[] = []
  await verifyLedger(pool, { scopeId, onFinding: (finding) => found.push(finding) })
  return found
}

/** Units drawn from grants, units left in them, and units counted as used, over all customers of the scope. */
export async function totals(pool: Pool, { scopeId }: Scope): Promise<{ drawn: bigint; left: bigint; used: bigint }> {
  const [row] = await pool.query<{ drawn: bigint; left: bigint; used: bigint }>(
    `select
       (select coalesce(-sum(delta), 0) from entry where scope_id = $1 and kind = 'draw')::bigint as drawn,
       (select coalesce(sum(remaining), 0) from ledger_grant where scope_id = $1)::bigint as left,
       (select coalesce(sum(used_total), 0) from account where scope_id = $1 and merged_into is null)::bigint as used`,
    [scopeId],
  )
  if (!row) throw new Error('sums are always there')
  return { ...row }
}

/** What the customers' events tell of the scope's ledger, in the order it was logged. */
export async function factsIn(
  pool: Pool,
  { scopeId }: Scope,
): Promise<{ event: string; uuid: string; distinctId: string; properties: Record<string, unknown> }[]> {
  const rows = await pool.query<{ uuid: string; distinct_id: string; payload: string }>(
    'select uuid, distinct_id, payload from event_log where lane = $1 order by xid, seq',
    [scopeId],
  )
  return rows.map(({ uuid, distinct_id, payload }) => {
    const { event, properties } = JSON.parse(payload) as { event: string; properties: Record<string, unknown> }
    return { event, uuid, distinctId: distinct_id, properties }
  })
}
