import assert from 'node:assert/strict'
import test from 'node:test'
import { type Link, tokenKeyOf, walkChain } from './chain.ts'

const walk = (links: Record<string, Link>, from = 'c', linked: string | null = 'b', linksMax = 10) =>
  walkChain(from, linked, { linksMax, look: async (token) => links[token] ?? { kind: 'lost' } })

test('a token without a link is a chain of its own', async () => {
  assert.deepEqual(await walk({}, 'c', null), { rootKey: tokenKeyOf('c'), linked: [] })
})

test('a chain is walked to its root, the nearest link first', async () => {
  const chain = await walk({ b: { kind: 'read', linkedToken: 'a' }, a: { kind: 'read', linkedToken: null } })
  assert.deepEqual(chain, {
    rootKey: tokenKeyOf('a'),
    linked: [
      { key: tokenKeyOf('b'), token: 'b' },
      { key: tokenKeyOf('a'), token: 'a' },
    ],
  })
})

test('what is stored knows the root without a further look', async () => {
  const looked: string[] = []
  const chain = await walkChain('c', 'b', {
    linksMax: 10,
    look: async (token) => {
      looked.push(token)
      return { kind: 'stored', rootKey: 'root' }
    },
  })
  assert.equal(chain?.rootKey, 'root')
  assert.deepEqual(looked, ['b'])
})

test('a link that the store has forgotten is the root; one that it cannot tell now is no verdict', async () => {
  assert.equal((await walk({ b: { kind: 'lost' } }))?.rootKey, tokenKeyOf('b'))
  assert.equal(await walk({ b: { kind: 'unreadable' } }), null)
})

test('circles and endless chains end', async () => {
  const circle = await walk({ b: { kind: 'read', linkedToken: 'c' } })
  assert.equal(circle?.linked.length, 1)
  const endless = await walkChain('t', 't0', {
    linksMax: 10,
    look: async (token) => ({ kind: 'read', linkedToken: `${token}0` }),
  })
  assert.equal(endless?.linked.length, 10)
})
