import assert from 'node:assert/strict'
import { createHash, randomUUID } from 'node:crypto'
import { describe, test } from 'node:test'
import { clientAccountToken, standardAccountToken } from '../../src/purchases/account-tokens.ts'
import { anEvent, eventually } from '../app/project.ts'
import { assertAnswer, type Counter, openShop, type Store, someone } from './shop.ts'
import type { Body } from './sim.ts'

/** Whose a purchase is: each row of account tokens, policies and transfers, against the simulator. `rows.md` names them. */
const shop = await openShop()
const stores = ['appstore', 'playstore'] as const
const things = {
  appstore: { lasting: { productId: 'lifetime' }, plan: { productId: 'monthly' }, units: { productId: 'pack' } },
  playstore: {
    lasting: { productId: 'lifetime', purchaseOptionId: 'buy' },
    plan: { productId: 'monthly', basePlanId: 'base' },
    units: { productId: 'pack', purchaseOptionId: 'buy' },
  },
} as const
const sha256 = (text: string) => createHash('sha256').update(text).digest('hex')
const counters = { appstore: await shop.open('appstore'), playstore: await shop.open('playstore') }
const { account_token_namespace: namespace } = await counters.appstore.project.get(`/apps/${counters.appstore.app.id}`)

/** Bought with this token, or with none. */
async function bought(by: Counter, kind: keyof (typeof things)[Store], accountToken: string | null): Promise<Body> {
  const account = someone()
  const token = accountToken === null ? {} : { accountToken }
  return by.buy(account, { ...things[by.store][kind], customer: undefined, ...token })
}

const unknownToken = (store: Store) => (store === 'appstore' ? randomUUID() : sha256(randomUUID()))

describe('account tokens', () => {
  const { appstore, playstore } = counters
  const bundle = appstore.name
  interface Row {
    row: string
    by: Counter
    tokenOf: (who: string) => string
    expected: string
  }
  const rows: Row[] = [
    { row: 'Play: SHA-256 of the id', by: playstore, tokenOf: sha256, expected: 'given' },
    {
      ...{ row: 'Play: compared exactly', by: playstore, expected: 'owner_unverified' },
      tokenOf: (who) => sha256(who).toUpperCase(),
    },
    {
      ...{ row: 'Play: of the bytes as given', by: playstore, expected: 'owner_unverified' },
      tokenOf: (who) => sha256(` ${who}`),
    },
    {
      ...{ row: 'Apple: the standard rule', by: appstore, expected: 'given' },
      tokenOf: (who) => standardAccountToken(namespace, 'test', who),
    },
    {
      ...{ row: 'Apple: in any case', by: appstore, expected: 'given' },
      tokenOf: (who) => standardAccountToken(namespace, 'test', who).toUpperCase(),
    },
    {
      ...{ row: 'Apple: the standard rule, for live', by: appstore, expected: 'owner_unverified' },
      tokenOf: (who) => standardAccountToken(namespace, 'live', who),
    },
    ...['production', 'staging', 'development', 'custom'].map(
      (word): Row => ({
        ...{ row: `Apple: the rule of clients, ${word}`, by: appstore, expected: 'given' },
        tokenOf: (who) => clientAccountToken(bundle, word, who),
      }),
    ),
    {
      ...{ row: 'Apple: the rule of clients, another word', by: appstore, expected: 'owner_unverified' },
      tokenOf: (who) => clientAccountToken(bundle, 'elsewhere', who),
    },
    {
      ...{ row: 'Apple: all zeros are none', by: appstore, expected: 'owner_unverified' },
      tokenOf: () => '00000000-0000-0000-0000-000000000000',
    },
  ]
  for (const { row, by, tokenOf, expected } of rows) {
    test(row, async () => {
      const who = someone()
      const held = await shop.silently(() => bought(by, 'lasting', tokenOf(who)))
      assertAnswer(by, await by.bring(who, held), expected, row)
      assert.equal(await by.entitled(who), expected === 'given')
    })
  }

  test('Apple: the rule of clients, by the names that the app sets', async () => {
    const [by, who] = [await shop.open('appstore'), someone()]
    const address = 'https://edge.example.com'
    await by.settings({ client_token_namespaces: [address] })
    const token = (name: string) => clientAccountToken(by.name, name, who)
    const unnamed = await shop.silently(() => bought(by, 'lasting', token('production')))
    assertAnswer(by, await by.bring(who, unnamed), 'owner_unverified')
    const named = await bought(by, 'lasting', token(`custom-${sha256(address)}`))
    assertAnswer(by, await by.bring(who, named), 'given')
  })

  for (const store of stores) {
    const by = counters[store]
    test(`${store}: a registered value, for its customer only`, async () => {
      const [who, other, value] = [someone(), someone(), unknownToken(store)]
      await by.bind(who, value)
      const held = await shop.silently(() => bought(by, 'lasting', value))
      assertAnswer(by, await by.bring(other, held), 'owner_unverified')
      assertAnswer(by, await by.bring(who, held), 'given')
    })

    test(`${store}: by an anonymous id from before the identify`, async () => {
      const [anonymous, who] = [someone(), someone()]
      const held = await shop.silently(() => by.buy(anonymous, things[store].lasting))
      await by.app.post('/event', anEvent(who, { event: '$identify', $anon_distinct_id: anonymous }))
      await eventually(async () => {
        const { status, body } = await by.bring(who, held)
        return status === 200 && body.idempotent_replay === false
      }, 10_000)
      assertAnswer(by, await by.bring(anonymous, held), 'replay')
    })

    test(`${store}: a value that is registered later gives what waits for it`, async () => {
      const [who, value] = [someone(), unknownToken(store)]
      const held = await bought(by, 'lasting', value)
      await shop.settled()
      assertAnswer(by, await by.bring(who, held), 'owner_unverified')
      await by.bind(who, value)
      await eventually(() => by.entitled(who), 10_000)
      assertAnswer(by, await by.bring(who, held), 'replay')
    })
  }
})

describe('a purchase that nobody has yet', () => {
  type Token = 'absent' | 'unknown' | 'of another'
  const rows: [Token, 'reject' | 'first_claim', string][] = [
    ['absent', 'reject', 'owner_unverified'],
    ['unknown', 'reject', 'owner_unverified'],
    ['of another', 'reject', 'owner_unverified'],
    ['absent', 'first_claim', 'given'],
    ['unknown', 'first_claim', 'given'],
    ['of another', 'first_claim', 'owner_unverified'],
  ]
  for (const store of stores) {
    const by = counters[store]
    for (const [token, policy, expected] of rows) {
      test(`${store}: a token ${token}, ${policy}`, async () => {
        const [who, other] = [someone(), someone()]
        const value = token === 'absent' ? null : unknownToken(store)
        if (token === 'of another') await by.bind(other, value ?? '')
        await by.settings({ unbound_purchases: policy })
        const held = await shop.silently(() => bought(by, 'lasting', value))
        assertAnswer(by, await by.bring(who, held), expected)
        assert.equal(await by.entitled(who), expected === 'given')
        await by.settings({ unbound_purchases: 'reject' })
        if (expected !== 'given') return
        // Theirs from now on, and so is what carries the same token.
        assertAnswer(by, await by.bring(other, held), 'conflict')
        if (value === null) return
        const next = await shop.silently(() => bought(by, 'units', value))
        assertAnswer(by, await by.bring(other, next), 'owner_unverified')
        assertAnswer(by, await by.bring(who, next), 'given')
      })
    }
  }

  test('appstore: who claimed what carries nothing is written back to the store', async () => {
    const [by, who] = [counters.appstore, someone()]
    await by.settings({ unbound_purchases: 'first_claim' })
    const held = await shop.silently(() => bought(by, 'lasting', null))
    assertAnswer(by, await by.bring(who, held), 'given')
    await by.settings({ unbound_purchases: 'reject' })
    await shop.settled()
    const { signedTransaction } = await by.verb(held, 're-sign')
    const { appAccountToken } = JSON.parse(Buffer.from(signedTransaction.split('.')[1], 'base64url').toString())
    assert.equal(appAccountToken, standardAccountToken(namespace, 'test', who))
  })

  test('appstore: the newest renewal’s token decides where the purchase’s own says nothing', async () => {
    const [by, who, other] = [counters.appstore, someone(), someone()]
    const held = await shop.silently(async () => {
      const first = await bought(by, 'plan', null)
      const accountToken = standardAccountToken(namespace, 'test', who)
      await by.verb(first, 'upgrade', { productId: 'yearly', accountToken })
      return by.verb(first, 're-sign', { order: first.transactionId })
    })
    assertAnswer(by, await by.bring(other, held), 'owner_unverified')
    assertAnswer(by, await by.bring(who, held), 'given')
    assert.equal(await by.balance(who), 500)
  })
})

describe('a purchase of another customer', () => {
  type Kind = keyof (typeof things)[Store]
  interface Row {
    policy: 'keep' | 'transfer_if_inactive' | 'transfer'
    kind: Kind
    ended?: true
    expected: string
  }
  const rows: Row[] = [
    { policy: 'keep', kind: 'plan', expected: 'conflict' },
    { policy: 'keep', kind: 'plan', ended: true, expected: 'conflict' },
    { policy: 'transfer_if_inactive', kind: 'plan', expected: 'conflict' },
    { policy: 'transfer_if_inactive', kind: 'plan', ended: true, expected: 'given' },
    { policy: 'transfer', kind: 'plan', expected: 'given' },
    { policy: 'transfer', kind: 'lasting', expected: 'given' },
    { policy: 'transfer', kind: 'units', expected: 'conflict' },
    { policy: 'transfer_if_inactive', kind: 'units', expected: 'conflict' },
  ]
  for (const store of stores) {
    const by = counters[store]
    for (const { policy, kind, ended, expected } of rows) {
      test(`${store}: ${policy}, ${kind}${ended ? ' that ended' : ''}`, async () => {
        const [who, other, third] = [someone(), someone(), someone()]
        const held = await by.buy(who, things[store][kind])
        assertAnswer(by, await by.bring(who, held), 'given')
        await shop.settled()
        if (ended) await by.verb(held, 'expire')
        await shop.settled()
        await by.settings({ transfer_policy: policy })
        assertAnswer(by, await by.bring(other, held), expected)
        const moved = expected === 'given'
        if (kind === 'units') assert.deepEqual([await by.balance(who), await by.balance(other)], [10, 0])
        else assert.deepEqual([await by.entitled(who), await by.entitled(other)], [!ended && !moved, !ended && moved])
        assert.deepEqual([(await by.shown(who)).length, (await by.shown(other)).length], moved ? [0, 1] : [1, 0])
        // Once a day, and not back either.
        if (moved) for (const next of [who, third]) assertAnswer(by, await by.bring(next, held), 'conflict')
        await by.settings({ transfer_policy: 'keep' })
      })
    }

    test(`${store}: once a day, and then again`, async () => {
      const by = await shop.open(store)
      const [who, other] = [someone(), someone()]
      const held = await by.buy(who, things[store].lasting)
      await by.settings({ transfer_policy: 'transfer' })
      assertAnswer(by, await by.bring(who, held), 'given')
      assertAnswer(by, await by.bring(other, held), 'given')
      await by.move('PT23H')
      assertAnswer(by, await by.bring(who, held), 'conflict')
      await by.move('PT2H')
      assertAnswer(by, await by.bring(who, held), 'given')
    })

    test(`${store}: an operator moves it, whatever the policy`, async () => {
      const [who, other] = [someone(), someone()]
      const held = await by.buy(who, things[store].plan)
      assertAnswer(by, await by.bring(who, held), 'given')
      const [{ id }] = await by.shown(who)
      const customer_id = await by.project.customer(other)
      const trail = await by.project.post(`/purchases/${id}/transfer`, { customer_id, reason: 'asked for' })
      assert.deepEqual(
        trail.transfers.map(({ cause, reason }: Body) => [cause, reason]),
        [['operator', 'asked for']],
      )
      assert.deepEqual([await by.entitled(who), await by.entitled(other)], [false, true])
      assertAnswer(by, await by.bring(other, held), 'replay')
      assertAnswer(by, await by.bring(who, held), 'conflict')
    })

    test(`${store}: of a deleted customer, until an operator gives it`, async () => {
      const [who, other] = [someone(), someone()]
      const held = await by.buy(who, things[store].plan)
      assertAnswer(by, await by.bring(who, held), 'given')
      const [{ id }] = await by.shown(who)
      await by.project.delete(`/customers/${await by.project.customer(who)}`)
      assertAnswer(by, await by.bring(other, held), 'conflict')
      await by.verb(held, 'cancel')
      await shop.settled()
      assertAnswer(by, await by.bring(other, held), 'conflict')
      const customer_id = await by.project.customer(other)
      await by.project.post(`/purchases/${id}/transfer`, { customer_id, reason: 'theirs by now' })
      assertAnswer(by, await by.bring(other, held), 'replay')
      assert.equal(await by.entitled(other), true)
    })
  }

  test('appstore: a change of plan while another is signed in stays with its owner', async () => {
    const [by, who, other] = [counters.appstore, someone(), someone()]
    const held = await by.buy(who, things.appstore.plan)
    assertAnswer(by, await by.bring(who, held), 'given')
    const accountToken = standardAccountToken(namespace, 'test', other)
    const next = await by.verb(held, 'upgrade', { productId: 'yearly', accountToken })
    await shop.settled()
    assertAnswer(by, await by.bring(other, next), 'conflict')
    assert.deepEqual([await by.balance(who), await by.balance(other)], [500, 0])
  })
})
