import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { isConnectionLoss, Pool, sqlState } from '../../src/db/pool.ts'
import {
  attachProduct,
  createProduct,
  grantUnits,
  reverseOperation,
  revokeGrant,
  verifyLedger,
} from '../../src/entitlements/index.ts'
import { systemClock as clock } from '../../src/kernel/clock.ts'
import { Refusal } from '../../src/kernel/errors.ts'
import type { Scope } from '../../src/tenancy/index.ts'
import { type CutProxy, cutProxy } from '../harness/cut-proxy.ts'
import { factsIn, openLedger, totals, untilAnswered } from './world.ts'

const ledger = await openLedger()
after(() => ledger[Symbol.asyncDispose]())
const { pool, database } = ledger
const direct = await ledger.spender()
after(() => direct[Symbol.asyncDispose]())

interface World {
  scope: Scope
  customerId: string
}

/** One thing that an app or a backend does, and what has become of the ledger once it was done. */
interface Action {
  /** Cut before each message too: statements with parameters are several, of which only the last one counts. */
  inPieces?: boolean
  prepare: () => Promise<World>
  act: (world: World, url: string) => Promise<unknown>
  /** After any number of tries, the last of which was answered. */
  outcome: (world: World) => Promise<unknown>
}

const monthAgo = () => clock.now() - 45 * 24 * 3600_000

async function customerWith(allowance: number, terms: object = {}): Promise<World> {
  const scope = await ledger.scope()
  const exports = await ledger.feature(scope)
  const customerId = await ledger.customer(scope, 'u')
  await ledger.grant(scope, customerId, exports, allowance, terms)
  return { scope, customerId }
}

/** A process of its own that reaches the database by `url` for what it spends. */
async function spend(url: string, world: World, command: { quantity: number; entity?: string }): Promise<unknown> {
  const spending = { scope: world.scope, distinctId: 'u', operationId: 'op', ...command }
  if (url === database.url) return untilAnswered(direct.consume, spending)
  await using spender = await ledger.spender(url)
  return await spender.consume(spending)
}

async function through<T>(url: string, work: (pool: Pool) => Promise<T>): Promise<T> {
  await using own = new Pool(url, { name: 'cut', max: 1 })
  return await work(own)
}

async function facts({ scope }: World): Promise<string[]> {
  const told = await factsIn(pool, scope)
  assert.equal(new Set(told.map(({ uuid }) => uuid)).size, told.length, 'each once')
  return told.map(({ event }) => event).toSorted()
}

const made = ['$feature_access_changed', '$feature_granted']

const actions: Record<string, Action> = {
  'a spend that leaves units': {
    prepare: () => customerWith(10),
    act: (world, url) => spend(url, world, { quantity: 4 }),
    async outcome(world) {
      assert.deepEqual(await totals(pool, world.scope), { drawn: 4n, left: 6n, used: 4n })
      assert.deepEqual(await facts(world), made)
    },
  },
  'a spend that resets and takes the last unit': {
    inPieces: true,
    prepare: () => customerWith(5, { interval: 'month', startsAt: monthAgo() }),
    act: (world, url) => spend(url, world, { quantity: 5 }),
    async outcome(world) {
      assert.deepEqual(await totals(pool, world.scope), { drawn: 5n, left: 0n, used: 5n })
      assert.deepEqual(await facts(world), [made[0], '$feature_exhausted', made[1], '$feature_reset'])
    },
  },
  'a spend that rolls units over': {
    prepare: () => customerWith(5, { interval: 'month', startsAt: monthAgo(), rollover: { max: 3n, periods: 2 } }),
    act: (world, url) => spend(url, world, { quantity: 6 }),
    async outcome(world) {
      assert.deepEqual(await totals(pool, world.scope), { drawn: 6n, left: 2n, used: 6n })
      assert.deepEqual(await facts(world), [...made, '$feature_reset'])
    },
  },
  'the first spend of an entity that nobody registered': {
    async prepare() {
      const world = await customerWith(1)
      await pool.transaction(async (tx) => {
        const template = { feature: 'exports', allowance: 5, unlimited: false, interval: null, rollover: null }
        const grants = [{ ...template, entity_scoped: true, max_entities: 1 }]
        await createProduct(tx, world.scope, { key: 'team', name: 'Team', type: 'subscription', grants, stores: [] })
        const times = { startsAt: null, expiresAt: null }
        await attachProduct(tx, world.scope, { customerId: world.customerId, product: 'team', ...times })
      })
      return world
    },
    act: (world, url) => spend(url, world, { quantity: 3, entity: 'seat' }),
    async outcome(world) {
      const { drawn, left } = await totals(pool, world.scope)
      assert.deepEqual([drawn, left], [3n, 3n])
      assert.deepEqual(await facts(world), [...made, made[1]])
      const [terms] = await pool.query('select granted from entity_terms where scope_id = $1', [world.scope.scopeId])
      assert.deepEqual(terms, { granted: 1 })
    },
  },
  'a grant': {
    prepare: () => customerWith(10, { expiresAt: clock.now() + 3600_000 }),
    act: async ({ scope, customerId }, url) => {
      const [feature] = await pool.query<{ id: number }>('select id from feature where scope_id = $1', [scope.scopeId])
      const grant = {
        ...{
          customerId,
          entityId: null,
          allowance: 5n,
          unlimited: false,
          interval: null,
          rollover: null,
          startsAt: null,
        },
        ...{
          expiresAt: null,
          note: null,
          source: { origin: 'manual', ref: 'once', rank: 0, productId: null } as const,
        },
        feature: { id: feature?.id ?? 0, key: 'exports', type: 'metered', scale: 0 } as const,
      }
      const uniqueViolation = '23505'
      await through(url, (own) => own.transaction((tx) => grantUnits(tx, scope, [grant]))).catch((error: unknown) => {
        if (sqlState(error) !== uniqueViolation) throw error
      })
    },
    async outcome(world) {
      assert.equal((await totals(pool, world.scope)).left, 15n)
      assert.deepEqual(await facts(world), [made[0], ...made, made[1]])
    },
  },
  'a revocation': {
    async prepare() {
      const world = await customerWith(10)
      await spend(database.url, world, { quantity: 4 })
      return world
    },
    act: async ({ scope }, url) => {
      const [grant] = await pool.query<{ id: bigint }>('select id from ledger_grant where scope_id = $1', [
        scope.scopeId,
      ])
      const by = { at: null, actor: 'key_test', note: null }
      await through(url, (own) => own.transaction((tx) => revokeGrant(tx, [scope], grant?.id ?? 0n, by)))
    },
    async outcome(world) {
      assert.deepEqual(await totals(pool, world.scope), { drawn: 4n, left: 0n, used: 4n })
      assert.deepEqual(await facts(world), [made[0], ...made, '$feature_revoked'])
    },
  },
  'a reversal': {
    async prepare() {
      const world = await customerWith(10)
      await spend(database.url, world, { quantity: 4 })
      return world
    },
    act: ({ scope, customerId }, url) => {
      const what = { operationId: 'op', customerId, actor: 'key_test', note: null }
      return through(url, (own) => own.transaction((tx) => reverseOperation(tx, scope, what)))
    },
    async outcome(world) {
      assert.deepEqual(await totals(pool, world.scope), { drawn: 4n, left: 10n, used: 4n })
      assert.deepEqual(await facts(world), [...made, '$feature_reversed'])
    },
  },
  'a merge': {
    async prepare() {
      const world = await customerWith(10, { expiresAt: clock.now() + 3600_000 })
      const { scope } = world
      const other = await ledger.customer(scope, 'v')
      const [feature] = await pool.query<{ id: number }>('select id from feature where scope_id = $1', [scope.scopeId])
      const exports = { id: feature?.id ?? 0, key: 'exports', type: 'metered', scale: 0 } as const
      await pool.transaction((tx) =>
        grantUnits(tx, scope, [
          {
            ...{ customerId: other, feature: exports, entityId: null, allowance: 5n, unlimited: false, interval: null },
            ...{ rollover: null, startsAt: null, expiresAt: null, note: null },
            source: { origin: 'manual', ref: 'other', rank: 0, productId: null },
          },
        ]),
      )
      await spend(database.url, world, { quantity: 4 })
      await untilAnswered(direct.consume, { scope, distinctId: 'v', quantity: 1, operationId: 'other' })
      return world
    },
    act: async ({ scope, customerId }, url) => {
      const [other] = await pool.query<{ id: string }>(
        `select id from customer where scope_id = $1 and id <> $2 and merged_into is null`,
        [scope.scopeId, customerId],
      )
      if (other) await through(url, (own) => ledger.merge(scope, other.id, customerId, own))
    },
    async outcome(world) {
      assert.deepEqual(await totals(pool, world.scope), { drawn: 5n, left: 10n, used: 5n })
      assert.deepEqual(await facts(world), [made[0], made[0], ...made, made[1]])
    },
  },
}

for (const [name, { inPieces = false, prepare, act, outcome }] of Object.entries(actions)) {
  test(`${name}, with the connection lost before or after any statement, is done once by the time it is answered`, async () => {
    await using counting = await cutProxy(database.url)
    const whole = await prepare()
    await act(whole, counting.url)
    await outcome(whole)
    assert.ok(counting.statements >= 4, `only ${counting.statements} statements`)

    const cuts: ((proxy: CutProxy) => void)[] = []
    for (let n = 1; n <= counting.statements; n++) {
      cuts.push(
        (proxy) => proxy.cut(n, 'before'),
        (proxy) => proxy.cut(n, 'after'),
      )
    }
    for (let n = 1; inPieces && n <= counting.messages; n++) cuts.push((proxy) => proxy.cutMessage(n))
    let failures = 0
    for (const cut of cuts) {
      const world = await prepare()
      await using proxy = await cutProxy(database.url)
      cut(proxy)
      const error = await act(world, proxy.url).then(
        () => null,
        (reason: unknown) => reason,
      )
      if (error !== null) failures++
      assert.ok(error === null || isAway(error), String(error))
      await act(world, database.url)
      await outcome(world)
    }
    assert.ok(failures > cuts.length / 2, `${failures} of ${cuts.length} were noticed`)
    const found: unknown[] = []
    await verifyLedger(pool, { onFinding: (finding) => found.push(finding) })
    assert.deepEqual(found, [])
  })
}

function isAway(error: unknown): boolean {
  return error instanceof Refusal ? error.code === 'billing_unavailable' : isConnectionLoss(error)
}
