import type { AppleOffer, AppleProduct } from './types.ts'

/** What is for sale before anybody says otherwise: a bit of everything, beginning with the demo's product. */
export function appleCatalogue(): AppleProduct[] {
  const trial: AppleOffer = { id: 'trial', type: 'intro', mode: 'free_trial', period: 'P1W' }
  const plan = {
    type: 'subscription' as const,
    group: 'pro',
    period: 'P1M',
    grace: 'P16D',
    familySharing: true,
    currency: 'USD',
  }
  const product = (name: string) => `com.example.demo.${name}`
  return [
    {
      ...plan,
      productId: product('pro_monthly'),
      level: 2,
      price: 9_990,
      offers: [trial, { id: 'half', type: 'promo', mode: 'pay_as_you_go', period: 'P1M', price: 4_990 }],
    },
    { ...plan, productId: product('plus_monthly'), level: 2, price: 9_990 },
    { ...plan, productId: product('pro_yearly'), level: 2, period: 'P1Y', price: 99_990, offers: [trial] },
    { ...plan, productId: product('premium_monthly'), level: 1, price: 19_990 },
    { ...plan, productId: product('basic_monthly'), level: 3, price: 2_990 },
    { productId: product('coins_100'), type: 'consumable', price: 990, currency: 'USD' },
    { productId: product('lifetime'), type: 'non_consumable', price: 49_990, currency: 'USD', familySharing: true },
    { productId: product('season_pass'), type: 'non_renewing', price: 14_990, currency: 'USD' },
  ]
}
