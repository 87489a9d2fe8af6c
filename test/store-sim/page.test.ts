import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { type Body, openSim } from './sim.ts'

/** The page as a browser gets it, without one: what it looks for is there, and what its buttons ask for is answered. */
const sim = await openSim()
after(() => sim[Symbol.asyncDispose]())
const text = async (path: string): Promise<string> => {
  const answer = await fetch(`${sim.url}${path}`)
  assert.equal(answer.status, 200, path)
  return answer.text()
}
const html = await text('/')
const script = await text('/page.js')
const all = (source: string, pattern: RegExp) => [...source.matchAll(pattern)].map(([, found = '']) => found)

test('all that it refers to is served, and nothing from elsewhere', async () => {
  const addresses = all(html, /(?:src|href)="([^"]+)"/g).filter((address) => !address.startsWith('data:'))
  assert.ok(addresses.length >= 2)
  for (const address of addresses) {
    assert.match(address, /^\/[^/]/)
    await text(address)
  }
  assert.doesNotMatch(script, /https?:\/\//)
})

test('every element that the script looks for is on the page', () => {
  const ids = new Set(all(html, /id="([\w-]+)"/g))
  const wanted = [...all(script, /byId\('([\w-]+)'\)/g), ...all(script, /querySelector(?:All)?\('#([\w-]+)/g)]
  assert.ok(wanted.length > 10)
  for (const id of wanted) assert.ok(ids.has(id), `#${id}`)
  const fields = new Set(all(html, /name="(\w+)"/g))
  const named = all(script, /buyForm\.(\w+)/g).filter((name) => !name.startsWith('on'))
  assert.ok(named.length > 5)
  for (const name of named) assert.ok(fields.has(name), `a field ${name}`)
})

describe('every button asks for something that the simulator does', () => {
  const filling: Record<string, string> = { 'app.store': 'appstore', 'one.id': 'none', id: 'none', verb: 'renew' }
  const calls = [...script.matchAll(/ask\('(\w+)',\s*(?:'([^']+)'|`([^`]+)`)/g)].map(
    ([, method = '', plain, template]) => ({ method, path: plain ?? template ?? '' }),
  )

  test('each call has its route', async () => {
    assert.ok(calls.length >= 12, `${calls.length} calls`)
    // None is made in another way.
    assert.equal(all(script, /\b(fetch)\(/g).length, 1)
    assert.equal(all(script, /\b(ask)\(/g).length, calls.length + 1)
    for (const { method, path } of calls) {
      const filled = path.replaceAll(/\$\{([^}]+)\}/g, (_, name: string) => filling[name] ?? '0')
      const { status, body } = await sim.call(method, filled, method === 'GET' ? undefined : {})
      assert.ok(!['no_such_path', 'no_such_method'].includes(body.error?.code), `${method} ${filled}: ${status}`)
      assert.ok(status < 500, `${method} ${filled}: ${status} ${JSON.stringify(body)}`)
    }
  })

  const [written = ''] = /const verbsOf = (\{[\s\S]+?\n\})/.exec(script)?.slice(1) ?? []
  const verbsOf: Record<'appstore' | 'playstore', Record<string, string>> = JSON.parse(
    written
      .replaceAll(/(\w+):/g, '"$1":')
      .replaceAll("'", '"')
      .replaceAll(/,(\s*\})/g, '$1'),
  )
  const bought = {
    appstore: {
      subscription: { productId: 'com.example.demo.pro_monthly' },
      one_time: { productId: 'com.example.demo.coins_100' },
      pending: { productId: 'com.example.demo.coins_100', pending: true },
    },
    playstore: {
      subscription: { productId: 'pro_monthly' },
      one_time: { productId: 'coins_100' },
      pending: { productId: 'coins_100', pending: true },
    },
  }
  for (const store of ['appstore', 'playstore'] as const) {
    for (const [kind, verbs] of Object.entries(verbsOf[store])) {
      test(`${store}, ${kind}: ${verbs}`, async () => {
        const purchase = bought[store][kind as keyof (typeof bought)[typeof store]]
        assert.ok(purchase, `${kind} is known here`)
        let happened = 0
        for (const verb of verbs.split(' ')) {
          const account = `${kind}-${verb}`
          const { id } = await sim.control('POST', `/sim/${store}/purchases`, { account, ...purchase })
          const body = /grade$/.test(verb) ? { productId: otherPlan[store] } : {}
          const answer = await sim.call('POST', `/sim/${store}/purchases/${id}/${verb}`, body)
          // What can't happen now is told in words; what never happens to it is a button too many.
          assert.notEqual(answer.body.error?.code, 'no_such_verb', verb)
          assert.ok([200, 409].includes(answer.status), `${verb}: ${answer.status} ${JSON.stringify(answer.body)}`)
          if (answer.status === 200) happened++
        }
        assert.ok(happened > 0)
      })
    }
  }

  test('each kind of trouble can be made', async () => {
    const [kinds = ''] = /const faultKinds =\s*'([^']+)'/.exec(script)?.slice(1) ?? []
    assert.ok(kinds.split(' ').length > 10)
    for (const kind of kinds.split(' ')) {
      await sim.control('PUT', '/sim/faults', { faults: [{ kind, path: '*', count: 1 }] })
    }
    await sim.control('PUT', '/sim/faults', { faults: [] })
  })

  test('buying from the form: what it sends is taken, with every product that it lists', async () => {
    const { apps }: { apps: Body[] } = await sim.control('GET', '/sim/state')
    for (const app of apps) {
      for (const product of app.products) {
        const plans: Body[] = product.basePlans ?? product.purchaseOptions ?? [{}]
        for (const { id } of plans) {
          const plan =
            id === undefined ? {} : { [product.type === 'subscription' ? 'basePlanId' : 'purchaseOptionId']: id }
          const body = {
            app: app.app,
            account: `form-${product.productId}-${id}`,
            productId: product.productId,
            ...plan,
          }
          await sim.control('POST', `/sim/${app.store}/purchases`, body)
        }
      }
    }
  })
})

const otherPlan = { appstore: 'com.example.demo.premium_monthly', playstore: 'premium_monthly' }
