import { createPrivateKey, createPublicKey, generateKeyPairSync, hash, X509Certificate } from 'node:crypto'
import { exportJWK, type JWK } from 'jose'
import { opaque, type Seeded, uuid } from '../ids.ts'
import { type Issued, newKey } from './certificate.ts'
import { type Chain, type ChainKind, newBranch, newChain, newXcodeCertificate } from './chain.ts'

/** Everything secret the simulator owns; kept in its snapshot, shown by `GET /sim/config`: it opens nothing real. */
export interface KeyRing {
  ocspUrl: string
  chains: Partial<Record<ChainKind, Chain>> & { genuine: Chain }
  /** Signs alone, as Xcode does for an app that is run from it. */
  xcode: Issued
  /** The key of the App Store Server API. */
  apiKey: { issuerId: string; keyId: string; privateKey: string }
  serviceAccount: { email: string; keyId: string; clientId: string; privateKey: string }
  oidc: { keyId: string; email: string; privateKey: string }
}

const rsaBits = 2048

export async function newKeyRing(world: Seeded, ocspUrl: string, at: number): Promise<KeyRing> {
  return {
    ocspUrl,
    chains: { genuine: await newChain(world, 'genuine', ocspUrl, at) },
    xcode: await newXcodeCertificate(world, at),
    apiKey: { issuerId: uuid(world, 'issuer'), keyId: opaque(world, 'key', 10).toUpperCase(), privateKey: newKey() },
    serviceAccount: {
      email: 'publisher@store-sim.iam.gserviceaccount.example',
      keyId: opaque(world, 'key', 40),
      clientId: '100000000000000000001',
      privateKey: newRsaKey(),
    },
    oidc: {
      keyId: opaque(world, 'key', 40),
      email: 'push@store-sim.iam.gserviceaccount.example',
      privateKey: newRsaKey(),
    },
  }
}

/** The chain to sign with at this moment. Leaves that ran out give way to new ones, as the store's do. */
export async function chainFor(world: Seeded, keys: KeyRing, kind: ChainKind, at: number): Promise<Chain> {
  const present = keys.chains[kind]
  const isMeant = kind === 'expired_leaf'
  if (present !== undefined && (isMeant || (at >= present.leaf.notBefore && at <= present.leaf.notAfter)))
    return present
  const made = await newBranch(world, keys.chains.genuine, kind, keys.ocspUrl, at)
  keys.chains[kind] = made
  return made
}

export async function rotateLeaf(world: Seeded, keys: KeyRing, at: number): Promise<void> {
  keys.chains.genuine = await newBranch(world, keys.chains.genuine, 'genuine', keys.ocspUrl, at)
}

/** As `x5c` carries them. */
export function x5cOf({ leaf, intermediate, root }: Chain): string[] {
  return [leaf, intermediate, root].map(({ certificate }) => new X509Certificate(certificate).raw.toString('base64'))
}

export async function oidcJwk({ oidc }: KeyRing): Promise<JWK> {
  const jwk = await exportJWK(createPublicKey(createPrivateKey(oidc.privateKey)))
  return { ...jwk, kid: oidc.keyId, alg: 'RS256', use: 'sig' }
}

/** The key file that Google Cloud gives out, with the simulator as its `token_uri`. */
export function serviceAccountFile({ serviceAccount }: KeyRing, url: string): Record<string, string> {
  return {
    type: 'service_account',
    project_id: 'store-sim',
    private_key_id: serviceAccount.keyId,
    private_key: serviceAccount.privateKey,
    client_email: serviceAccount.email,
    client_id: serviceAccount.clientId,
    auth_uri: `${url}/play/auth`,
    token_uri: `${url}/play/token`,
    universe_domain: 'googleapis.com',
  }
}

export function fingerprint(certificate: string): string {
  return hash('sha256', new X509Certificate(certificate).raw)
}

function newRsaKey(): string {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: rsaBits })
  return privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
}
