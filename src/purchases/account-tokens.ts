import { hash } from 'node:crypto'
import { uuidV5 } from '../kernel/ids.ts'
import type { Environment } from '../tenancy/index.ts'
import type { Store, StoreApp } from './types.ts'

/**
 * What a purchase may carry to say that it was made for the distinct id. No secrets: they bind a purchase to whoever checked
 * out. `baseUrls` are the public addresses that clients may be configured with.
 */
export function accountTokensOf(
  app: Pick<StoreApp, 'accountTokenNamespace' | 'bundleId' | 'scope' | 'settings'>,
  store: Store,
  distinctId: string,
  baseUrls: readonly string[],
): string[] {
  if (store === 'playstore') return [playAccountToken(distinctId)]
  // Registered with each page.
  if (store === 'stripe') return []
  const { accountTokenNamespace, bundleId, scope, settings } = app
  const names = settings.clientTokenNamespaces ?? [...baseUrls, ...fixedWords]
  const ofClients =
    bundleId === null ? [] : names.map((name) => clientAccountToken(bundleId, namespaceOf(name), distinctId))
  return [standardAccountToken(accountTokenNamespace, scope.environment, distinctId), ...ofClients]
}

const fixedWords = ['production', 'staging', 'development', 'custom']

export function playAccountToken(distinctId: string): string {
  return hash('sha256', distinctId)
}

export function standardAccountToken(namespace: string, environment: Environment, distinctId: string): string {
  return uuidV5(namespace, `${environment}:${distinctId}`)
}

/** As existing clients make it. */
export function clientAccountToken(bundleId: string, namespace: string, distinctId: string): string {
  const message = [hash('sha256', bundleId), namespace, 'appStore', distinctId].join('\0')
  const digest = hash('sha256', Buffer.from(message), 'buffer')
  digest.writeUInt8((digest.readUInt8(6) & 0x0f) | 0x50, 6)
  digest.writeUInt8((digest.readUInt8(8) & 0x3f) | 0x80, 8)
  const hex = digest.toString('hex', 0, 16)
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
}

/** A base address as clients name it, or a fixed word as it is. */
function namespaceOf(name: string): string {
  return /^https?:/i.test(name) ? `custom-${hash('sha256', normalised(name))}` : name
}

/** Scheme and host in lower case, without a default port, fragment and slashes at the end. */
function normalised(address: string): string {
  const url = URL.parse(address)
  if (!url) return address
  url.hash = ''
  return url.href.replace(/\/+$/, '')
}
