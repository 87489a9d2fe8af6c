import type { Pool } from '../../db/pool.ts'
import type { Clock } from '../../kernel/clock.ts'
import { dayMs, leavesReadMs, ocspAgainMs, ocspSilentMsMax } from '../../kernel/limits.ts'
import type { Chain } from './chain.ts'
import {
  type AskedLeaf,
  insertLeaf,
  type Leaf,
  selectDueLeaves,
  selectLeaves,
  selectSignedBy,
  updateLeaf,
} from './leaf-store.ts'
import type { Trusts } from './trusts.ts'

/** What is known of the revocation of certificates. Nobody is asked while a caller waits. */
export interface Revocations {
  /** Hex SHA-256. */
  revoked: () => ReadonlySet<string>
  /** Both certificates are known not to be revoked, by an answer that still holds. */
  isGood: (chain: Chain) => boolean
  /** A chain was used: a new one is kept, to be asked about in the background. */
  seen: (chain: Chain) => void
}

/** Named in the log; the README has the query for all. */
const revokedPurchasesLogged = 100

export interface RevocationOptions {
  pool: Pool
  clock: Clock
  trusts: Trusts
  log: { warn: (detail: object, words: string) => void; error: (detail: object, words: string) => void }
}

/** Read at start and every minute, so that what one process learns all know; asked about when first seen, and daily. */
export async function openRevocations(options: RevocationOptions): Promise<Revocations & Disposable> {
  const { pool, clock, trusts, log } = options
  let leaves = new Map<string, Leaf>()
  let revoked = new Set<string>()

  async function read(): Promise<void> {
    const found = await selectLeaves(pool)
    leaves = new Map(found.map((leaf) => [leaf.fingerprint, leaf]))
    const now = found.filter(({ status }) => status === 'revoked').map(({ fingerprint }) => fingerprint)
    if (now.length === revoked.size && now.every((each) => revoked.has(each))) return
    revoked = new Set(now)
    trusts.forgetChains()
  }

  async function keep({ fingerprints: [leaf, issuer], certificates: [first, second], root }: Chain): Promise<void> {
    const now = clock.now()
    await insertLeaf(pool, { fingerprint: leaf, issuerFingerprint: issuer, certificate: first, now })
    await insertLeaf(pool, { fingerprint: issuer, issuerFingerprint: root.fingerprint, certificate: second, now })
    await insertLeaf(pool, { ...root, issuerFingerprint: null, now })
    await look()
  }

  const stop = new AbortController()
  const restsUntil = new Map<string, number>()

  const revokedLately = new Set<string>()

  /** A while after it was learnt: what was being attached meanwhile is among them. */
  async function listSigned(): Promise<void> {
    for (const fingerprint of revokedLately) {
      const signed = await selectSignedBy(pool, fingerprint, { max: revokedPurchasesLogged })
      revokedLately.delete(fingerprint)
      if (signed.count > 0) log.error({ fingerprint, ...signed }, 'purchases rest on a certificate that was revoked')
    }
  }

  /** Asks about all that are due, and takes up what others have learnt. */
  async function look(): Promise<void> {
    if (stop.signal.aborted) return
    const due = await selectDueLeaves(pool, { now: clock.now(), dayMs })
    for (const leaf of due) {
      if ((restsUntil.get(leaf.fingerprint) ?? 0) <= clock.now()) await ask(leaf)
    }
    await read()
  }

  async function ask(leaf: AskedLeaf): Promise<void> {
    const { fingerprint, knownAt } = leaf
    // Loaded with the first certificate that there is to ask about.
    const { askOcsp } = await import('./ask-ocsp.ts')
    const answer = await askOcsp(leaf, { now: clock.now(), signal: stop.signal })
    if (stop.signal.aborted) return
    const now = clock.now()
    if (answer.kind !== 'unusable') {
      restsUntil.delete(fingerprint)
      await updateLeaf(pool, { fingerprint, status: answer.kind, nextUpdate: answer.nextUpdate, now })
      if (answer.kind === 'revoked') {
        revokedLately.add(fingerprint)
        log.error(
          { fingerprint },
          'a certificate that signed purchases was revoked: nothing it signed is taken any more',
        )
      }
      return
    }
    restsUntil.set(fingerprint, now + ocspAgainMs)
    if (now - knownAt > ocspSilentMsMax) {
      log.warn({ fingerprint, why: answer.why }, 'whether a certificate was revoked is not known for a day')
    }
  }

  await read()
  const failed = (error: unknown) => log.warn({ err: error }, 'certificates of the App Store could not be looked at')
  const timer = setInterval(() => void listSigned().then(look).catch(failed), leavesReadMs)
  timer.unref()
  const seen = new Set<string>()
  return {
    revoked: () => revoked,
    isGood: ({ fingerprints }) => fingerprints.every((each) => isGood(leaves.get(each), clock.now())),
    seen(chain) {
      const [leaf] = chain.fingerprints
      if (seen.has(leaf) || leaves.has(leaf)) return
      seen.add(leaf)
      void keep(chain).catch(failed)
    },
    [Symbol.dispose]() {
      clearInterval(timer)
      stop.abort()
    },
  }
}

function isGood(leaf: Leaf | undefined, now: number): boolean {
  return leaf?.status === 'good' && leaf.nextUpdate !== null && now < leaf.nextUpdate
}
