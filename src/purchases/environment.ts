import type { StoreApp, StoreEnvironment } from './types.ts'

/** A verified `environment` claim, in our words. */
export function storeEnvironmentOf(claim: unknown): StoreEnvironment {
  return claim === 'Production' ? 'production' : claim === 'Sandbox' ? 'sandbox' : 'xcode'
}

/** Which evidence a key takes. Sandbox and Production have the same root: only the signed claim tells them apart. Pure. */
export function isAccepted(
  { scope, settings }: Pick<StoreApp, 'scope' | 'settings'>,
  environment: StoreEnvironment,
  { customerId, now, held = false }: { customerId: string | null; now: number; held?: boolean },
): boolean {
  if (scope.environment === 'test') return environment !== 'production'
  if (held) return true
  if (environment === 'production') return true
  if (environment === 'xcode' || settings.sandboxInLive === 'nobody') return false
  if (settings.sandboxInLive === 'anybody') return true
  const isOpen = settings.reviewOpenUntil !== null && now < settings.reviewOpenUntil
  return isOpen || (customerId !== null && settings.reviewCustomers.includes(customerId))
}
