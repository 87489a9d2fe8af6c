import pino from 'pino'
import { Pool } from '../../src/db/pool.ts'
import {
  Catalogues,
  type ConsumeAnswer,
  createConsume,
  createFeature,
  ensureEntryPartitions,
  type FeatureRecord,
  grantUnits,
  ledgerSettings,
  mergeAccounts,
  registerEntity,
  retireEntity,
  reverseOperation,
  revokeGrant,
} from '../../src/entitlements/index.ts'
import { ensurePartitions } from '../../src/events/index.ts'
import { must } from '../../src/kernel/assert.ts'
import { systemClock as clock } from '../../src/kernel/clock.ts'
import { Refusal } from '../../src/kernel/errors.ts'
import { randomText } from '../../src/kernel/ids.ts'
import { Directory, type Scope } from '../../src/tenancy/index.ts'
import { testDatabase } from '../harness/database.ts'
import { testScope } from '../harness/lane.ts'
import type { LedgerCommand } from './ledger-commands.ts'

export interface LedgerWorld extends AsyncDisposable {
  pool: Pool
  url: string
  /** A scope of its own in which the commands run, one after another, by the verbs that serve requests. */
  run: (commands: readonly LedgerCommand[]) => Promise<{ scope: Scope; answers: ConsumeAnswer[] }>
}

export async function ledgerWorld(): Promise<LedgerWorld> {
  await using stack = new AsyncDisposableStack()
  const { pool, url } = stack.use(await testDatabase())
  await ensureEntryPartitions(pool)
  await ensurePartitions(pool)
  await pool.query(`insert into instance (id, sealed_secrets) values (1, '')`)
  const directory = stack.use(await Directory.open({ pool, url, clock, log: pino({ level: 'silent' }) }))
  const ledgerPool = stack.use(new Pool(url, { name: 'test ledger', max: 2, pipeline: true, settings: ledgerSettings }))
  const catalogues = new Catalogues(pool, directory)
  const tombstoneKey = Buffer.alloc(32, 7)
  const consume = createConsume({
    pool: ledgerPool,
    holdupPool: ledgerPool,
    catalogues,
    directory,
    tombstoneKey,
    clock,
  })
  const everything = stack.move()
  return {
    pool,
    url,
    async run(commands) {
      const run = new Run(pool, await testScope(pool), consume)
      await run.begin()
      for (const command of commands) await run.one(command)
      return { scope: run.scope, answers: run.answers }
    },
    [Symbol.asyncDispose]: () => everything.disposeAsync(),
  }
}

class Run {
  readonly answers: ConsumeAnswer[] = []
  readonly scope: Scope
  readonly #pool: Pool
  readonly #consume: ReturnType<typeof createConsume>
  readonly #features = new Map<string, FeatureRecord>()
  readonly #customers: { id: string; distinctId: string; isMerged: boolean }[] = []
  readonly #grants: bigint[] = []
  readonly #operations: string[] = []

  constructor(pool: Pool, scope: Scope, consume: ReturnType<typeof createConsume>) {
    this.#pool = pool
    this.scope = scope
    this.#consume = consume
  }

  async begin(): Promise<void> {
    for (const key of ['exports', 'reports']) await this.#feature({ key, name: key, type: 'metered', published: true })
    const creditCosts = [
      { feature: 'exports', cost: '0.3' },
      { feature: 'reports', cost: '1.5' },
    ]
    await this.#feature({ key: 'credits', name: 'Credits', type: 'creditSystem', published: true, creditCosts })
    // As if it had always cost this: a cost that is new is not held against what was paid.
    await this.#pool.query(`update feature set updated_at = now() - interval '1 year' where scope_id = $1`, [
      this.scope.scopeId,
    ])
    for (let i = 0; i < 3; i++) {
      const [id, distinctId] = [crypto.randomUUID(), randomText(8)]
      this.#customers.push({ id, distinctId, isMerged: false })
      await this.#pool.query('insert into customer (scope_id, id, created_at) values ($1, $2, now())', [
        this.scope.scopeId,
        id,
      ])
      await this.#pool.query(
        `insert into customer_alias (scope_id, distinct_id, customer_id, since_pos, first_seen_at)
         values ($1, $2, $3, 1, now())`,
        [this.scope.scopeId, distinctId, id],
      )
    }
  }

  async one(command: LedgerCommand): Promise<void> {
    try {
      await this.#do(command)
    } catch (error) {
      // A random command may be one that is refused, such as reversing a denial.
      if (!(error instanceof Refusal) || error.status >= 500) throw error
    }
  }

  async #do(command: LedgerCommand): Promise<void> {
    const { scope } = this
    switch (command.kind) {
      case 'grant':
        return this.#grant(command)
      case 'spend':
        return this.#spend(command)
      case 'revoke': {
        const id = this.#grants.at(command.which % this.#grants.length)
        if (id === undefined) return
        const at = command.later ? clock.now() + 3600_000 * 5 : null
        await this.#pool.transaction((tx) => revokeGrant(tx, [scope], id, { at, actor: 'key_test', note: null }))
        return
      }
      case 'reverse': {
        const operationId = this.#operations.at(command.which % this.#operations.length)
        if (operationId === undefined) return
        const [row] = await this.#pool.query<{ id: string }>(
          `select coalesce(c.merged_into, c.id) as id
           from operation o
           join customer c on c.scope_id = o.scope_id and c.id = o.customer_id
           where o.scope_id = $1 and o.kind = 0 and o.operation_id = $2`,
          [scope.scopeId, operationId],
        )
        const customerId = await this.#survivor(must(row, 'it was saved').id)
        await this.#pool.transaction((tx) =>
          reverseOperation(tx, scope, { operationId, customerId, actor: 'key_test', note: null }),
        )
        return
      }
      case 'register':
      case 'retire': {
        const name = { customerId: this.#customer(command.who).id, feature: 'exports', entityId: command.entity }
        await this.#pool.transaction<unknown>((tx) =>
          command.kind === 'register'
            ? registerEntity(tx, scope, name, 'key_test')
            : retireEntity(tx, scope, name, { actor: 'key_test', note: null }),
        )
        return
      }
      case 'merge':
        return this.#merge(this.#customer(command.who), this.#customer(command.into))
      case 'pass':
        return this.#pass(command.hours * 3600_000)
    }
  }

  async #grant({ who, feature, allowance, every, rolls, entity }: LedgerCommand & { kind: 'grant' }): Promise<void> {
    const made = await this.#pool.transaction((tx) =>
      grantUnits(tx, this.scope, [
        {
          customerId: this.#customer(who).id,
          feature: must(this.#features.get(feature), 'it was made'),
          entityId: entity,
          allowance: allowance === null ? null : BigInt(allowance),
          unlimited: allowance === null,
          interval: every && allowance !== null ? 'hour' : null,
          rollover:
            every && allowance !== null && rolls !== null
              ? { max: BigInt(rolls), periods: rolls % 2 === 0 ? null : (rolls % 4) + 1 }
              : null,
          startsAt: null,
          // What never ends and is unlimited would leave little to be counted.
          expiresAt: allowance === null ? clock.now() + 3600_000 : null,
          source: { origin: 'manual', ref: `manual:${randomText(12)}`, rank: 0, productId: null },
          note: null,
        },
      ]),
    )
    this.#grants.push(...made.map(({ grant }) => grant.id))
  }

  async #spend({ who, feature, units, total, entity }: LedgerCommand & { kind: 'spend' }): Promise<void> {
    const operationId = randomText(10)
    const { scope } = this
    const answer = await this.#consume({
      scope: { ...scope, keyId: 'key_test', appId: 'app_test', appName: 'Test', platform: 'ios' },
      distinctId: this.#customer(who).distinctId,
      featureKey: feature,
      operationId,
      quantity: BigInt(total ? units * 4 : units),
      mode: total ? 'set_usage' : 'consume',
      entityId: entity,
    })
    this.#operations.push(operationId)
    this.answers.push(answer)
  }

  /** As the lane does when an anonymous customer turns out to be another one. */
  async #merge(source: { id: string; isMerged: boolean }, target: { id: string }): Promise<void> {
    if (source.id === target.id) return
    const { scope } = this
    source.isMerged = true
    await this.#pool.transaction(async (tx) => {
      await tx.query('update customer set merged_into = $3 where scope_id = $1 and id = $2', [
        scope.scopeId,
        source.id,
        target.id,
      ])
      await tx.query('update customer_alias set customer_id = $3 where scope_id = $1 and customer_id = $2', [
        scope.scopeId,
        source.id,
        target.id,
      ])
      await tx.query(
        `insert into merge_journal
           (scope_id, customer_id, source_customer_id, source_distinct_id, target_distinct_id, pos, status)
         values ($1, $2, $3, 'a', 'b', 1, 'merged')`,
        [scope.scopeId, target.id, source.id],
      )
      await mergeAccounts(tx, scope, [{ sourceCustomerId: source.id, targetCustomerId: target.id }])
    })
  }

  async #pass(ms: number): Promise<void> {
    const ofScope = `(select id from ledger_grant where scope_id = $1)`
    for (const statement of [
      `update account set last_at_ms = last_at_ms - $2::bigint where scope_id = $1 and last_at_ms > 0`,
      `update ledger_grant set effective_at_ms = effective_at_ms - $2::bigint, expires_at_ms = expires_at_ms - $2::bigint,
         anchor_ms = anchor_ms - $2::bigint, revoked_at_ms = revoked_at_ms - $2::bigint,
         created_at_ms = created_at_ms - $2::bigint where scope_id = $1`,
      `update refill set at_ms = at_ms - $2::bigint where grant_id in ${ofScope}`,
      `update operation set occurred_at_ms = occurred_at_ms - $2::bigint where scope_id = $1`,
      `update entry set at_ms = at_ms - $2::bigint where scope_id = $1`,
    ]) {
      await this.#pool.query(statement, [this.scope.scopeId, ms])
    }
  }

  #customer(place: number) {
    const open = this.#customers.filter(({ isMerged }) => !isMerged)
    return must(open.at(place % open.length), 'one is never merged')
  }

  async #survivor(id: string): Promise<string> {
    const [row] = await this.#pool.query<{ merged_into: string | null }>(
      'select merged_into from customer where scope_id = $1 and id = $2',
      [this.scope.scopeId, id],
    )
    return row?.merged_into ? this.#survivor(row.merged_into) : id
  }

  async #feature(feature: Parameters<typeof createFeature>[2]): Promise<void> {
    const made = await this.#pool.transaction((tx) => createFeature(tx, this.scope, feature))
    this.#features.set(made.key, made)
  }
}
