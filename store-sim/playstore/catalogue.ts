import type { Money, PlayProduct } from './types.ts'

/** What is for sale before anybody says otherwise: a bit of everything, beginning with the demo's product. */
export function playCatalogue(): PlayProduct[] {
  const trial = { id: 'trial', phase: 'free_trial' as const, period: 'P1W' }
  const monthly = { id: 'monthly', period: 'P1M', grace: 'P7D', hold: 'P30D' }
  return [
    {
      productId: 'pro_monthly',
      type: 'subscription',
      basePlans: [
        { ...monthly, price: usd('9', 990_000_000), offers: [trial] },
        { id: 'prepaid-month', period: 'P1M', price: usd('10', 990_000_000), prepaid: true },
        { id: 'prepaid-days', period: 'P3D', price: usd('1', 990_000_000), prepaid: true },
      ],
    },
    {
      productId: 'pro_yearly',
      type: 'subscription',
      basePlans: [{ ...monthly, id: 'yearly', period: 'P1Y', price: usd('99', 990_000_000) }],
    },
    { productId: 'premium_monthly', type: 'subscription', basePlans: [{ ...monthly, price: usd('19', 990_000_000) }] },
    { productId: 'extra_storage', type: 'subscription', basePlans: [{ ...monthly, price: usd('1', 990_000_000) }] },
    { productId: 'coins_100', type: 'one_time', purchaseOptions: [{ id: 'buy', price: usd('0', 990_000_000) }] },
    {
      productId: 'lifetime',
      type: 'one_time',
      purchaseOptions: [
        { id: 'buy', price: usd('49', 990_000_000) },
        { id: 'rent', kind: 'rent', price: usd('4', 990_000_000) },
        { id: 'preorder', kind: 'preorder', price: usd('44', 990_000_000) },
      ],
    },
  ]
}

function usd(units: string, nanos: number): Money {
  return { currencyCode: 'USD', units, nanos }
}
