import type { Environment } from '../../tenancy/index.ts'

/** An address that a payment page may send people back to: https, in test also a local one, and nothing that names a person. */
function returnUrlOf(text: string, environment: Environment): URL | null {
  const url = URL.parse(text)
  if (url === null || url.username !== '' || url.password !== '') return null
  const isLocal = url.protocol === 'http:' && localHosts.has(url.hostname)
  return url.protocol === 'https:' || (isLocal && environment === 'test') ? url : null
}

const localHosts = new Set(['localhost', '127.0.0.1', '[::1]'])

/**
 * The address as it is sent on, when an entry allows it: the same origin and path, with any query; of an entry that ends with a
 * slash, whatever is below it too. Null: no entry does. Pure.
 */
export function allowedReturn(text: string, allowed: readonly string[], environment: Environment): string | null {
  const url = returnUrlOf(text, environment)
  if (!url) return null
  const isAllowed = allowed.some((entry) => {
    const base = returnUrlOf(entry, environment)
    if (!base || base.origin !== url.origin) return false
    return url.pathname === base.pathname || (base.pathname.endsWith('/') && url.pathname.startsWith(base.pathname))
  })
  return isAllowed ? url.href : null
}

/** Whether an address may be an entry of an app's list. */
export function isReturnUrl(text: string, environment: Environment): boolean {
  return returnUrlOf(text, environment) !== null
}
