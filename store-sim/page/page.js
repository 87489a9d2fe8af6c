const verbsOf = {
  appstore: {
    subscription:
      'renew fail-billing enter-grace hold recover cancel restart expire refund reverse-refund resubscribe price-increase extend upgrade downgrade',
    one_time: 'refund reverse-refund',
    pending: 'complete-pending cancel',
  },
  playstore: {
    subscription:
      'renew fail-billing enter-grace hold recover cancel restart pause resume expire refund revoke resubscribe defer price-increase upgrade downgrade',
    one_time: 'refund revoke release',
    pending: 'complete-pending cancel',
  },
}
const faultKinds =
  'rate_limited server_error hang unauthorized forbidden not_found truncated_json drop duplicate reorder delay ocsp_down ocsp_revoked clock_skew wrong_audience unknown_state dead_token foreign_root expired_leaf no_leaf_marker no_intermediate_marker no_ca p384_leaf other_issuer forged_signature tampered_payload truncated_jws'
const refreshMs = 1500
const logShown = 200
const good = ['active', 'ACTIVE', 'PURCHASED', 'CANCELED', 'owned']
const waiting = ['grace', 'IN_GRACE_PERIOD', 'PENDING', 'PAUSED', 'pending', 'ON_HOLD', 'retry']

const byId = (id) => document.getElementById(id)
const buyForm = document.querySelector('#buy form')
/** @type {any} */
let state = { apps: [], faults: [] }
let lastLog = 0
let drawn = ''
let clocksDrawn = ''

/** Text stays text: nothing that a store or a person wrote becomes markup. */
function make(tag, props = {}, ...children) {
  const node = Object.assign(document.createElement(tag), props)
  node.append(...children.filter((child) => child !== null))
  return node
}

async function ask(method, path, body) {
  const response = await fetch(path, { method, ...(body === undefined ? {} : { body: JSON.stringify(body) }) })
  const answer = await response.json()
  if (!response.ok) throw new Error(answer.error?.message ?? `${response.status}`)
  return answer
}

function tell(words, tone = '') {
  Object.assign(byId('told'), { textContent: words, className: tone })
}

async function act(work) {
  try {
    await work()
  } catch (error) {
    tell(error.message, 'bad')
  }
  await refresh()
}

const nameOf = (app) => `${app.store === 'appstore' ? 'App Store' : 'Play'} · ${app.app}`
const appChosen = () => state.apps[buyForm.app.selectedIndex] ?? state.apps[0]
const time = (iso) => iso.slice(0, 19).replace('T', ' ')

/** Made again only when something changed: a list that is open stays open while time goes by. */
function drawClocks() {
  const seen = JSON.stringify(state.apps.map(({ store, app, clock }) => [store, app, clock.mode]))
  const times = [...document.querySelectorAll('.clock b')]
  if (seen === clocksDrawn) {
    for (const [i, app] of state.apps.entries()) times[i].textContent = time(app.now)
    return
  }
  clocksDrawn = seen
  const clocks = state.apps.map((app) => {
    const move = (by) => act(() => ask('POST', '/sim/clock', { app: app.app, by }))
    const mode = make('select', {
      onchange: (event) => act(() => ask('POST', '/sim/clock', { app: app.app, mode: event.target.value })),
    })
    for (const name of ['real', 'accelerated', 'manual'])
      mode.append(make('option', { textContent: name, value: name, selected: app.clock.mode === name }))
    const steps = { '+1 hour': 'PT1H', '+1 day': 'P1D', '+1 week': 'P1W', '+1 month': 'P1M' }
    const buttons = Object.entries(steps).map(([label, by]) =>
      make('button', { textContent: label, onclick: () => move(by) }),
    )
    const name = make('small', { textContent: nameOf(app) })
    return make('div', { className: 'clock' }, name, make('b', { textContent: time(app.now) }), mode, ...buttons)
  })
  byId('clocks').replaceChildren(...clocks)
}

byId('shorten').onclick = () =>
  act(async () => {
    await ask('POST', '/sim/shorten', { month_ms: 20_000 })
    tell('what is sold from now on lasts 20 seconds for a month', 'good')
  })

function drawChoices() {
  const kept = buyForm.app.selectedIndex
  buyForm.app.replaceChildren(...state.apps.map((app) => make('option', { textContent: nameOf(app) })))
  buyForm.app.selectedIndex = Math.max(0, kept)
  drawProducts()
}

function drawProducts() {
  const products = appChosen()?.products ?? []
  const choices = products.flatMap((product) =>
    (product.basePlans ?? product.purchaseOptions ?? [{}]).map((plan) => [product, plan]),
  )
  const kept = buyForm.product.value
  buyForm.product.replaceChildren(
    ...choices.map(([{ productId }, { id }]) => {
      const value = JSON.stringify([productId, id ?? null])
      return make('option', { value, textContent: id ? `${productId} · ${id}` : productId, selected: value === kept })
    }),
  )
  drawOffers()
}

function drawOffers() {
  const [productId, planId] = JSON.parse(buyForm.product.value || '[]')
  const product = (appChosen()?.products ?? []).find((one) => one.productId === productId)
  const plan = [...(product?.basePlans ?? []), ...(product?.purchaseOptions ?? [])].find(({ id }) => id === planId)
  const offers = (product?.offers ?? plan?.offers ?? []).map((offer) => offer.id ?? offer)
  const options = ['', ...offers].map((id) => make('option', { value: id, textContent: id || 'none' }))
  buyForm.offer.replaceChildren(...options)
}

/** Both stores' purchases in one shape. */
function purchasesOf(app) {
  if (app.store === 'appstore')
    return [
      ...app.pending.map(({ id, purchase }) => ({ id, kind: 'pending', status: 'pending', ...purchase, until: null })),
      ...app.lineages.map(({ id, account, transactions, renewal, sharedFrom }) => {
        const latest = transactions.at(-1)
        const until = renewal?.graceUntil ?? latest.expiresAt
        const status = latest.revocation !== null ? 'refunded' : (renewal?.status ?? 'owned')
        const kind = renewal === null ? 'one_time' : 'subscription'
        const note = sharedFrom === null ? `${transactions.length} paid` : 'shared'
        return { id, account, productId: latest.productId, kind, status, until, note }
      }),
    ]
  return [
    ...app.subscriptions.map(({ id, account, items, state: status, orders, acknowledgedAt }) => ({
      id,
      account,
      productId: items[0].productId,
      kind: status === 'PENDING' ? 'pending' : 'subscription',
      status,
      until: items[0].expiresAt,
      note: `${orders.length} paid${acknowledgedAt === null ? ', not acknowledged' : ''}`,
    })),
    ...app.oneTimes.map(({ id, account, productId, state: status, acknowledgedAt, consumed, refundableQuantity }) => ({
      id,
      account,
      productId,
      kind: status === 'PENDING' ? 'pending' : 'one_time',
      status,
      until: null,
      note: consumed ? 'consumed' : acknowledgedAt === null ? 'not acknowledged' : `${refundableQuantity} refundable`,
    })),
  ]
}

function toneOf(status) {
  if (good.includes(status)) return 'good'
  return waiting.includes(status) ? 'wait' : 'bad'
}

function drawPurchases() {
  const rows = state.apps.flatMap((app) =>
    purchasesOf(app)
      .toReversed()
      .map((one) => {
        const verbs = verbsOf[app.store][one.kind]
          .split(' ')
          .map((verb) => make('button', { textContent: verb, onclick: () => act(() => change(app, one, verb)) }))
        const give = make('button', {
          textContent: 'hand to the service',
          onclick: () => act(() => handOver(app, one.id, one.account)),
        })
        const until =
          one.until === null || one.until === undefined ? '' : ` until ${time(new Date(one.until).toISOString())}`
        const about = make(
          'div',
          {},
          make('b', { textContent: one.account }),
          ` · ${one.productId}`,
          make('br'),
          make('span', { className: `mark ${toneOf(one.status)}`, textContent: one.status }),
          make('small', { textContent: `${until} ${one.note ?? ''}` }),
          make('br'),
          make('small', { textContent: `${nameOf(app)} · ${one.id}` }),
        )
        return make(
          'div',
          { className: 'purchase' },
          about,
          make('div', { className: 'verbs' }, ...verbs, one.kind === 'pending' ? null : give),
        )
      }),
  )
  byId('list').replaceChildren(
    ...(rows.length > 0 ? rows : [make('p', { className: 'soft', textContent: 'Nobody has bought anything yet.' })]),
  )
}

async function change(app, one, verb) {
  const body = {}
  if (verb === 'upgrade' || verb === 'downgrade') {
    body.productId = prompt(
      'To which product?',
      app.products.find(({ productId }) => productId !== one.productId)?.productId,
    )
    if (!body.productId) return
  }
  await ask('POST', `/sim/${app.store}/purchases/${one.id}/${verb}`, body)
  tell(`${verb}: done`, 'good')
}

async function handOver(app, id, customer, held) {
  const { purchase } = held ?? (await ask('POST', `/sim/${app.store}/purchases/${id}/re-sign`, {}))
  const answer = await ask('POST', '/sim/service', {
    store: app.store,
    app: app.app,
    path: '/purchase',
    body: { distinct_id: customer, ...purchase },
  })
  const { code, detail, idempotent_replay: replay } = answer.body
  const words =
    code === undefined ? (replay ? 'the service knew it' : 'the service took it') : `${code} ${detail ?? ''}`
  tell(`${answer.status}: ${words}`, answer.status === 200 ? 'good' : 'bad')
}

async function drawEntitled() {
  const app = state.apps.find((one) => one.connected_app_id !== null)
  const box = byId('entitled')
  if (app === undefined) {
    box.replaceChildren(make('p', { className: 'soft', textContent: 'No app of the service is connected.' }))
    return
  }
  const { body } = await ask('GET', `/sim/features?app=${encodeURIComponent(app.app)}`)
  const accounts = [...new Set(state.apps.flatMap((one) => purchasesOf(one).map(({ account }) => account)))]
  const rows = await Promise.all(
    accounts.map(async (customerId) => {
      const marks = await Promise.all(
        (body.data ?? []).map(async ({ key }) => {
          const answer = await ask('POST', '/sim/service', {
            store: app.store,
            app: app.app,
            path: '/entitled',
            body: { customerId, featureId: key },
          })
          const { allowed, balance } = answer.body
          const text = balance === null || balance === undefined ? key : `${key} ${balance}`
          return make('span', { className: `mark ${allowed ? 'good' : 'bad'}`, textContent: text })
        }),
      )
      return make('p', {}, make('b', { textContent: `${customerId} ` }), ...marks.flatMap((mark) => [mark, ' ']))
    }),
  )
  box.replaceChildren(...rows)
}

function drawFaults() {
  const lines = state.faults.map(({ kind, path = '*', count }) =>
    make('li', { textContent: `${kind} at ${path}${count === undefined ? '' : `, ${count} more`}` }),
  )
  byId('faults').replaceChildren(...lines)
}

async function drawLog() {
  const { log } = await ask('GET', `/sim/log?after=${lastLog}`)
  if (log.length === 0) return
  lastLog = log.at(-1).n
  const body = document.querySelector('#log tbody')
  for (const { at, what, status, fault } of log) {
    const isGood = status === 'SUCCESS' || (Number(status) >= 200 && Number(status) < 300)
    const result = make('td', {
      className: isGood ? 'good' : 'bad',
      textContent: fault ? `${status} (${fault})` : String(status),
    })
    body.prepend(make('tr', {}, make('td', { textContent: time(at) }), make('td', { textContent: what }), result))
  }
  while (body.rows.length > logShown) body.deleteRow(-1)
}

async function drawScenarios() {
  const { scenarios } = await ask('GET', '/sim/scenarios')
  const run = (name) => async () => {
    tell(`${name}: running…`)
    const { passed, why } = await ask('POST', '/sim/scenarios', { name })
    tell(passed ? `${name}: as expected` : `${name}: ${why}`, passed ? 'good' : 'bad')
  }
  const rows = scenarios.map(({ name, says }) =>
    make(
      'p',
      {},
      make('button', { textContent: 'run', onclick: () => act(run(name)) }),
      make('span', { textContent: says }),
    ),
  )
  byId('scenarios').replaceChildren(...rows)
}

async function refresh() {
  state = await ask('GET', '/sim/state')
  drawClocks()
  drawFaults()
  const seen = JSON.stringify(state.apps.map(({ now: _now, clock: _clock, deliveries: _sent, ...rest }) => rest))
  if (seen !== drawn) {
    drawn = seen
    drawChoices()
    drawPurchases()
  }
  await Promise.all([drawLog(), drawEntitled()])
}

buyForm.app.onchange = drawProducts
buyForm.product.onchange = drawOffers
buyForm.onsubmit = (event) => {
  event.preventDefault()
  const app = appChosen()
  const [productId, planId] = JSON.parse(buyForm.product.value)
  const isSubscription = app.products.find((one) => one.productId === productId)?.type === 'subscription'
  const { account, offer, quantity, customer, pending } = buyForm
  const plan = planId === null ? {} : { [isSubscription ? 'basePlanId' : 'purchaseOptionId']: planId }
  const isConnected = app.connected_app_id !== null
  const buyer = customer.value || account.value
  const body = {
    app: app.app,
    account: account.value,
    productId,
    ...plan,
    ...(offer.value ? { offer: offer.value } : {}),
    ...(Number(quantity.value) > 1 ? { quantity: Number(quantity.value) } : {}),
    ...(isConnected ? { customer: buyer } : {}),
    ...(pending.checked ? { pending: true } : {}),
  }
  void act(async () => {
    const held = await ask('POST', `/sim/${app.store}/purchases`, body)
    tell(`${account.value} bought ${productId}`, 'good')
    if (buyForm.submit.checked && isConnected && held.purchase) await handOver(app, held.id, buyer, held)
  })
}

document.querySelector('#connect form').onsubmit = (event) => {
  event.preventDefault()
  const body = Object.fromEntries(new FormData(event.target))
  void act(async () => tell(`connected ${(await ask('POST', '/sim/connect', body)).app}`, 'good'))
}
document.querySelector('#trouble form').onsubmit = (event) => {
  event.preventDefault()
  const { kind, path, count } = Object.fromEntries(new FormData(event.target))
  const fault = { kind, path, ...(count ? { count: Number(count) } : {}) }
  void act(() => ask('PUT', '/sim/faults', { faults: [...state.faults.filter((one) => one.count !== 0), fault] }))
}
byId('peace').onclick = () => act(() => ask('PUT', '/sim/faults', { faults: [] }))
byId('check').onclick = () =>
  void act(async () =>
    Object.assign(byId('findings'), {
      hidden: false,
      textContent: JSON.stringify(await ask('GET', '/sim/invariants'), null, 2),
    }),
  )
for (const kind of faultKinds.split(' '))
  document.querySelector('#trouble select').append(make('option', { textContent: kind }))

await act(drawScenarios)
setInterval(() => void refresh().catch(() => {}), refreshMs)
