import type { Pool } from '../../db/pool.ts'
import type { Clock } from '../../kernel/clock.ts'
import { leavesReadMs } from '../../kernel/limits.ts'
import type { Chain } from './chain.ts'
import { insertLeaf, type Leaf, selectLeaves } from './leaf-store.ts'
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

export interface RevocationOptions {
  pool: Pool
  clock: Clock
  trusts: Trusts
  log: { warn: (detail: object, words: string) => void }
}

/** Read at start and every minute, so that what one process learns all know. */
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

  async function keep({ fingerprints: [leaf, issuer], certificates: [first, second] }: Chain): Promise<void> {
    const now = clock.now()
    await insertLeaf(pool, { fingerprint: leaf, issuerFingerprint: issuer, certificate: first, now })
    await insertLeaf(pool, { fingerprint: issuer, issuerFingerprint: null, certificate: second, now })
    await read()
  }

  await read()
  const failed = (error: unknown) => log.warn({ err: error }, 'certificates of the App Store could not be read')
  const timer = setInterval(() => void read().catch(failed), leavesReadMs)
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
    [Symbol.dispose]: () => clearInterval(timer),
  }
}

function isGood(leaf: Leaf | undefined, now: number): boolean {
  return leaf?.status === 'good' && leaf.nextUpdate !== null && now < leaf.nextUpdate
}
