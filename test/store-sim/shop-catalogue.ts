/**
 * What is for sale in the stores, and what it gives: `monthly` gives `pro` and a hundred `exports` a month, `yearly` more of
 * them, `basic` only `pro`; `pack` ten `exports` once, and everything else `pro`.
 */
const plan = { type: 'subscription', group: 'plans', period: 'P1M', familySharing: true, price: 9_990 }

export const appleProducts = [
  {
    ...{ ...plan, productId: 'monthly', level: 2, grace: 'P16D' },
    offers: [
      { id: 'trial', type: 'intro', mode: 'free_trial', period: 'P1W' },
      { id: 'half', type: 'promo', mode: 'pay_as_you_go', period: 'P1M', price: 4_990 },
    ],
  },
  { ...plan, productId: 'yearly', level: 1, period: 'P1Y', grace: 'P16D' },
  { ...plan, productId: 'basic', level: 3 },
  { ...plan, productId: 'shared', group: 'shared' },
  { ...plan, productId: 'strict', group: 'strict' },
  { productId: 'pack', type: 'consumable', price: 990 },
  { productId: 'lifetime', type: 'non_consumable', price: 49_990, familySharing: true },
  { productId: 'shared_lifetime', type: 'non_consumable', price: 49_990, familySharing: true },
  { productId: 'season', type: 'non_renewing', price: 14_990 },
  { productId: 'open_season', type: 'non_renewing', price: 14_990 },
  { productId: 'unsold', type: 'non_consumable', price: 990 },
]

const price = { currencyCode: 'USD', units: '9', nanos: 990_000_000 }
const basePlan = { id: 'base', period: 'P1M', grace: 'P7D', hold: 'P30D', price }
const offers = [{ id: 'trial', phase: 'free_trial', period: 'P1W' }]
const days = { id: 'days', period: 'P3D', price, prepaid: true }
const month = { id: 'month', period: 'P1M', price, prepaid: true }
const subscription = (productId: string, ...basePlans: object[]) => ({ productId, type: 'subscription', basePlans })
const oneTime = (productId: string, ...kinds: object[]) => ({
  ...{ productId, type: 'one_time' },
  purchaseOptions: kinds.length > 0 ? kinds : [{ id: 'buy', price }],
})

export const playProducts = [
  subscription('monthly', { ...basePlan, offers }, days, month, { id: 'strict', period: 'P1M', price }),
  subscription('yearly', { ...basePlan, period: 'P1Y' }),
  subscription('basic', basePlan),
  subscription('addon', basePlan),
  oneTime('pack'),
  oneTime(
    'lifetime',
    { id: 'buy', price },
    { id: 'rent', kind: 'rent', price },
    { id: 'preorder', kind: 'preorder', price },
  ),
  oneTime('unsold'),
]

const both = (product_id: string, more: { apple?: object; play?: object } = {}) => [
  { store: 'appstore', product_id, ...more.apple },
  { store: 'playstore', product_id, ...more.play },
]
const apple = (product_id: string, more: object = {}) => [{ store: 'appstore', product_id, ...more }]
const product = (key: string, type: string, grants: object[], stores: object[]) => ({
  ...{ key, name: key, type, grants, stores },
})
const pro = { feature: 'pro' }
const exportsEach = (allowance: number) => ({ feature: 'exports', allowance, interval: 'month' })

export const productsOfService = [
  product('monthly', 'subscription', [pro, exportsEach(100)], both('monthly')),
  product('yearly', 'subscription', [pro, exportsEach(500)], both('yearly')),
  product('basic', 'subscription', [pro], both('basic')),
  product('addon', 'subscription', [{ feature: 'exports', allowance: 7, interval: 'month' }], both('addon')),
  product('shared', 'subscription', [pro], apple('shared', { family_sharing: true })),
  product('strict', 'subscription', [pro], apple('strict')),
  product('pack', 'one_time', [{ feature: 'exports', allowance: 10 }], both('pack', { play: { consumable: true } })),
  product('lifetime', 'one_time', [pro], both('lifetime')),
  product('shared_lifetime', 'one_time', [pro], apple('shared_lifetime', { family_sharing: true })),
  product('season', 'subscription', [pro], apple('season', { duration: 'P1M' })),
  product('open_season', 'subscription', [pro], apple('open_season')),
]
