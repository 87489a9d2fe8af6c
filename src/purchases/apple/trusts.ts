import { X509Certificate } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { trustSetsKeptMax } from '../../kernel/limits.ts'
import type { StoreApp } from '../types.ts'
import { type TrustSet, trustSet } from './chain.ts'
import { appleRoot } from './roots.ts'

export interface Trusts {
  /** What an app believes: Apple's root, and in `test` what was put for it. Undefined when that can't be read. */
  of: (app: StoreApp) => TrustSet | undefined
  /** Chains are looked at anew, for a certificate was revoked. */
  forgetChains: () => void
}

export function createTrusts(): Trusts {
  const live = trustSet([appleRoot])
  const sets = new LRUCache<string, TrustSet>({ max: trustSetsKeptMax })
  return {
    of({ scope, credentials: { appstoreTrust } }) {
      // Whatever was stored: nothing but Apple's root is believed in live.
      if (scope.environment === 'live' || !appstoreTrust) return live
      const key = JSON.stringify(appstoreTrust)
      const kept = sets.get(key)
      if (kept) return kept
      try {
        const { roots, xcodeCertificates } = appstoreTrust
        const made = trustSet([appleRoot, ...roots.map(readPem)], xcodeCertificates.map(readPem))
        sets.set(key, made)
        return made
      } catch {
        return undefined
      }
    },
    forgetChains() {
      live.chains.clear()
      for (const set of sets.values()) set.chains.clear()
    },
  }
}

function readPem(pem: string): X509Certificate {
  return new X509Certificate(pem)
}
