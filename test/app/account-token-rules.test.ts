import assert from 'node:assert/strict'
import { hash, randomUUID } from 'node:crypto'
import { after, test } from 'node:test'
import { clientAccountToken, playAccountToken } from '../../src/purchases/account-tokens.ts'
import fc from '../harness/random.ts'
import { startService } from '../harness/service.ts'
import type { Answer } from './answers.ts'
import { openPlay } from './play-world.ts'
import { assertRefused, type Project } from './project.ts'
import { openStore } from './store-world.ts'

/** Whose a purchase is by the token that it carries: each rule, over HTTP, before and after customers become one. */
const publicUrl = 'https://api.example.com'
const service = await startService({ PUBLIC_URL: publicUrl })
const apple = await openStore(service)
const play = await openPlay(service)
after(async () => {
  await apple[Symbol.asyncDispose]()
  await play[Symbol.asyncDispose]()
  await service[Symbol.asyncDispose]()
})

interface Rule {
  /** What a purchase carries that was made for the id. */
  tokenOf: (id: string) => string | Promise<string>
  /** Brings one that carries the token. */
  bring: (id: string, token: string) => Promise<Answer>
  refusal: string
}

/** A purchase of its own for each token: brought by whomever, it is the same one. */
function purchases<T>(make: (token: string) => T): (token: string) => T {
  const made = new Map<string, T>()
  return (token) => {
    const known = made.get(token) ?? make(token)
    made.set(token, known)
    return known
  }
}

const sold = purchases((appAccountToken) => apple.transaction(null, { appAccountToken }))
const ofApple = (tokenOf: Rule['tokenOf']): Rule => ({
  tokenOf,
  bring: (id, token) => apple.bring(id, sold(token)),
  refusal: 'app_store_purchase_owner_unverified',
})
const ofClients = (name: string) => ofApple((id) => clientAccountToken('com.example.app', name, id))
async function registered(id: string): Promise<string> {
  const value = randomUUID()
  const body = { app_id: apple.app.id, value }
  await apple.project.post(`/customers/${await apple.project.customer(id)}/checkout_bindings`, body)
  return value
}

const appStoreRules: Record<string, Rule> = {
  'the standard rule': ofApple(apple.tokenOf),
  'the rule of clients, by the address of the service': ofClients(`custom-${hash('sha256', publicUrl)}`),
  ...Object.fromEntries(
    ['production', 'staging', 'development', 'custom'].map((word) => [`the rule of clients, ${word}`, ofClients(word)]),
  ),
  'a registered value': ofApple(registered),
}
const soldByPlay = purchases((value) => play.buy(null, 'lifetime', {}, { obfuscatedExternalAccountId: value }))
const playRule: Rule = {
  tokenOf: playAccountToken,
  bring: (id, token) => play.bring(id, soldByPlay(token)),
  refusal: 'android_store_purchase_owner_unverified',
}

/** Ids that differ by what people would call nothing. */
let names = 0
const name = fc.tuple(
  fc
    .string({ unit: 'grapheme', minLength: 1, maxLength: 10 })
    .filter((text) => text.isWellFormed() && !text.includes('\0')),
  fc.nat(1),
  fc.nat(1),
)

async function holds(project: Project, rules: [string, Rule][], numRuns: number): Promise<void> {
  await fc.assert(
    fc.asyncProperty(name, async ([word, from, by]) => {
      const one = `Ä${++names}-${word}`
      const ids = [one, `${one}x`] as const
      const stranger = one.toLowerCase()
      const nobody = one.normalize('NFD')
      assert.equal(new Set([...ids, stranger, nobody]).size, 4)
      for (const id of [...ids, stranger]) await project.customer(id)
      const tokens = new Map<string, string>()
      for (const [title, { tokenOf, bring, refusal }] of rules) {
        const token = await tokenOf(ids[from] ?? one)
        tokens.set(title, token)
        assertRefused(await bring(ids[1 - from] ?? one, token), 400, refusal)
        // Of an id that differs by its spelling, and is nobody's.
        if (title !== 'a registered value') assertRefused(await bring(one, await tokenOf(nobody)), 400, refusal)
      }

      await project.post(`/customers/${await project.customer(ids[0])}/merge`, { source_distinct_id: ids[1] })
      for (const [title, { bring, refusal }] of rules) {
        const token = tokens.get(title) ?? ''
        assertRefused(await bring(stranger, token), 400, refusal)
        const taken = await bring(ids[by] ?? one, token)
        assert.equal(taken.status, 200, `${title}: ${JSON.stringify(taken.body)}`)
        assert.equal((await bring(stranger, token)).status, 409, 'who comes later learns that somebody has it')
      }
    }),
    { numRuns },
  )
}

test('at the App Store each rule binds for every id of a customer, once they are one, and for nobody else', async () => {
  await holds(apple.project, Object.entries(appStoreRules), 3)
})

test('at Google Play the hash of each id does', async () => {
  await holds(play.project, [['the hash', playRule]], 8)
})

test('the case of a token matters at Google Play, and not at the App Store', async () => {
  for (const [title, rule] of Object.entries(appStoreRules)) {
    const id = `Case-${title}`
    const token = (await rule.tokenOf(id)).toUpperCase()
    assert.equal((await rule.bring(id, token)).status, 200, title)
  }
  const token = playAccountToken('Case')
  assert.notEqual(token, token.toUpperCase())
  assertRefused(await playRule.bring('Case', token.toUpperCase()), 400, playRule.refusal)
  assert.equal((await playRule.bring('Case', token)).status, 200)
})
