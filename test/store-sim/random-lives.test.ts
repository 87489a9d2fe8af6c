import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { pass, setPace } from '../../store-sim/scenarios/pace.ts'
import { ask, setStage } from '../../store-sim/scenarios/stage.ts'
import fc from '../harness/random.ts'
import { startService } from '../harness/service.ts'
import { openSim } from './sim.ts'

const service = await startService()
const simulator = await openSim({ clock: 'real' })
after(async () => {
  await simulator[Symbol.asyncDispose]()
  await service[Symbol.asyncDispose]()
})
const sim = simulator.url
const runs = Number(process.env.LIFE_RUNS ?? 2)

type Step =
  | { kind: 'clock'; by: string }
  | { kind: 'verb'; does: string }
  | { kind: 'submit' }
  | { kind: 'faults'; faults: object[] }

const clock = fc.constantFrom('PT2H', 'P3D', 'P10D', 'P1M').map((by): Step => ({ kind: 'clock', by }))
const submit = fc.constant<Step>({ kind: 'submit' })
const lost = ['drop', 'duplicate', 'reorder', 'delay'].map((kind) => ({ kind, path: '/notify/*', probability: 0.6 }))
const busy = [
  { kind: 'server_error', path: '*purchases*', count: 3 },
  { kind: 'rate_limited', path: '*inApps*', count: 2 },
]
const faults = fc
  .constantFrom<object[]>([], ...lost.map((one) => [one]), lost, busy)
  .map((chosen): Step => ({ kind: 'faults', faults: chosen }))
const verbs = (...names: string[]) => fc.constantFrom(...names).map((does): Step => ({ kind: 'verb', does }))
const lives = {
  appstore: verbs(
    'renew',
    'fail-billing',
    'enter-grace',
    'recover',
    'cancel',
    'restart',
    'refund',
    'reverse-refund',
    'upgrade',
  ),
  playstore: verbs(
    'renew',
    'fail-billing',
    'enter-grace',
    'hold',
    'recover',
    'cancel',
    'pause',
    'resume',
    'revoke',
    'upgrade',
  ),
}
/** What a plan is changed to: back and forth. */
const plans = {
  appstore: [{ productId: 'com.example.demo.premium_monthly' }, { productId: 'com.example.demo.pro_monthly' }],
  playstore: [
    { productId: 'premium_monthly', basePlanId: 'monthly' },
    { productId: 'pro_monthly', basePlanId: 'monthly' },
  ],
}
const firstProduct = { appstore: 'com.example.demo.pro_monthly', playstore: 'pro_monthly' } as const

for (const store of ['appstore', 'playstore'] as const) {
  test(`${store}: whatever happens, is lost, late or twice, in the end everybody has what is paid and nothing else`, async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.oneof(clock, submit, faults, lives[store], lives[store]), { maxLength: 8 }),
        async (steps) => {
          await live(store, steps)
        },
      ),
      { numRuns: runs, endOnFailure: true },
    )
  })
}

async function live(store: 'appstore' | 'playstore', steps: readonly Step[]): Promise<void> {
  const connection = { workspaceBaseUrl: `${service.url}/v1`, secretKey: service.secretKey, namespace: 'service' }
  const stage = await setStage(sim, connection, store)
  const pace = await setPace(sim, stage, stage.followsClock)
  const at = `/sim/${store}/purchases`
  let held = await ask(sim, 'POST', at, {
    app: stage.name,
    account: 'ann',
    customer: 'ann',
    productId: firstProduct[store],
  })
  const bring = () =>
    fetch(`${service.url}/purchase`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ apiKey: stage.keys.test, distinct_id: 'ann', ...held.purchase }),
    }).then(async (response) => [response.status, await response.text()] as const)
  /** Play takes back what is not acknowledged: nothing else happens before that. */
  const settle = async () => {
    if (store === 'appstore') return sleep(50)
    await until(async () => {
      const { acknowledged, state } = await ask(sim, 'POST', `${at}/${held.id}/re-sign`)
      return acknowledged === true || state === 'EXPIRED' || state === 'ON_HOLD' || state === 'PAUSED'
        ? undefined
        : 'not yet'
    }).catch(() => {})
  }
  let changes = 0
  const [status, text] = await bring()
  assert.equal(status, 200, text)
  await settle()
  for (const step of steps) {
    if (step.kind === 'clock') await pass(sim, stage, pace, step.by)
    else if (step.kind === 'faults') await ask(sim, 'PUT', '/sim/faults', { faults: step.faults })
    else if (step.kind === 'submit') {
      const [answered, body] = await bring()
      assert.ok([200, 400, 429, 503].includes(answered), `${answered} ${body}`)
    } else {
      const plan = plans[store][changes % 2]
      const body = step.does === 'upgrade' ? plan : {}
      // What can't happen now doesn't.
      const next = await ask(sim, 'POST', `${at}/${held.id}/${step.does}`, body).catch(() => null)
      if (next !== null && step.does === 'upgrade') {
        changes++
        held = next
        await ask(sim, 'PUT', '/sim/faults', { faults: [] })
        await bring()
        await settle()
      }
    }
  }
  await ask(sim, 'PUT', '/sim/faults', { faults: [] })
  // Nothing that still gives something stays unread for longer than a week.
  for (const by of ['PT10M', 'P8D']) await pass(sim, stage, pace, by)
  await until(async () => {
    const found = await ask(sim, 'GET', '/sim/invariants')
    const mine = [...found.paid_without_access, ...found.access_without_paid].filter(({ app }) => app === stage.name)
    return mine.length === 0 ? undefined : JSON.stringify(mine)
  })
}

async function until(look: () => Promise<string | undefined>): Promise<void> {
  const end = performance.now() + 20_000
  for (;;) {
    const why = await look()
    if (why === undefined) return
    if (performance.now() > end) assert.fail(why)
    await sleep(100)
  }
}
