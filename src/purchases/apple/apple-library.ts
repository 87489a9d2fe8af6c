import { X509Certificate } from 'node:crypto'
import { Environment, SignedDataVerifier } from '@apple/app-store-server-library'
import { X509 } from 'jsrsasign'

export function hasExtension(certificate: X509Certificate, oid: string): boolean {
  const reader = new X509()
  reader.readCertHex(certificate.raw.toString('hex'))
  return reader.getExtInfo(oid) !== undefined
}

/** Apple's own check of a chain, offline. Throws for a chain that Apple's code refuses. */
export async function checkChain(
  roots: readonly X509Certificate[],
  leaf: X509Certificate,
  intermediate: X509Certificate,
  at: Date,
): Promise<void> {
  const known = checks.get(roots) ?? new AppleChainCheck(roots)
  checks.set(roots, known)
  await known.check(leaf, intermediate, at)
}

const checks = new WeakMap<readonly X509Certificate[], AppleChainCheck>()

/**
 * Without its online checks: those test against today, and leaves are replaced. The environment is one it wants to have;
 * chains know none.
 */
class AppleChainCheck extends SignedDataVerifier {
  readonly #roots: X509Certificate[]

  constructor(roots: readonly X509Certificate[]) {
    super(
      roots.map((root) => root.raw),
      false,
      Environment.SANDBOX,
      '',
    )
    this.#roots = roots.map((root) => new X509Certificate(root.raw))
  }

  async check(leaf: X509Certificate, intermediate: X509Certificate, at: Date): Promise<void> {
    await this.verifyCertificateChain(this.#roots, leaf, intermediate, at)
  }
}
