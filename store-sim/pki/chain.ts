import { numberId, type Seeded } from '../ids.ts'
import { dayMs } from '../period.ts'
import { type Issued, issue, newKey } from './certificate.ts'

/** How the chain of a signed string can be wrong on request: each kind has a chain of its own. */
export const chainKinds = [
  'genuine',
  'expired_leaf',
  'no_leaf_marker',
  'no_intermediate_marker',
  'foreign_root',
  'no_ca',
  'p384_leaf',
  'other_issuer',
] as const
export type ChainKind = (typeof chainKinds)[number]

export interface Chain {
  root: Issued
  intermediate: Issued
  leaf: Issued
}

const leafMarker = '1.2.840.113635.100.6.11.1'
const intermediateMarker = '1.2.840.113635.100.6.2.1'
const yearMs = 365 * dayMs
const leafLifeMs = 2 * yearMs

/** Certificates say what they are: nobody should take them for a store's. */
const subjects = {
  root: 'CN=Store simulator root, O=Turnpike store simulator',
  intermediate: 'CN=Store simulator intermediate, O=Turnpike store simulator',
  leaf: 'CN=Store simulator signing, O=Turnpike store simulator',
  ocsp: 'CN=Store simulator OCSP, O=Turnpike store simulator',
  xcode: 'CN=Store simulator, as Xcode signs, O=Turnpike store simulator',
  other: 'CN=Somebody else, O=Turnpike store simulator',
}

export async function newChain(world: Seeded, kind: ChainKind, ocspUrl: string, at: number): Promise<Chain> {
  const root = await issue({
    subject: subjects.root,
    serial: serial(world),
    notBefore: at - 10 * yearMs,
    notAfter: at + 30 * yearMs,
    issuer: undefined,
    role: 'root',
  })
  const intermediate = await issue({
    subject: subjects.intermediate,
    serial: serial(world),
    notBefore: at - 9 * yearMs,
    notAfter: at + 25 * yearMs,
    issuer: { subject: subjects.root, issued: root },
    role: 'intermediate',
    marker: kind === 'no_intermediate_marker' ? undefined : intermediateMarker,
    ocspUrl,
  })
  return { root, intermediate, leaf: await newLeaf(world, intermediate, kind, ocspUrl, at) }
}

/** Under the same root: what every wrong chain but the foreign one is. */
export async function newBranch(
  world: Seeded,
  { root, intermediate }: Chain,
  kind: ChainKind,
  ocspUrl: string,
  at: number,
): Promise<Chain> {
  if (kind === 'foreign_root') return newChain(world, kind, ocspUrl, at)
  const between =
    kind === 'no_intermediate_marker' || kind === 'no_ca'
      ? await otherIntermediate(world, { root, intermediate }, kind, ocspUrl)
      : intermediate
  return { root, intermediate: between, leaf: await newLeaf(world, between, kind, ocspUrl, at) }
}

function otherIntermediate(
  world: Seeded,
  { root, intermediate }: Pick<Chain, 'root' | 'intermediate'>,
  kind: 'no_intermediate_marker' | 'no_ca',
  ocspUrl: string,
): Promise<Issued> {
  return issue({
    subject: subjects.intermediate,
    serial: serial(world),
    notBefore: intermediate.notBefore,
    notAfter: intermediate.notAfter,
    issuer: { subject: subjects.root, issued: root },
    role: kind === 'no_ca' ? 'not_ca' : 'intermediate',
    marker: kind === 'no_ca' ? intermediateMarker : undefined,
    ocspUrl,
  })
}

function newLeaf(world: Seeded, intermediate: Issued, kind: ChainKind, ocspUrl: string, at: number): Promise<Issued> {
  const notBefore = kind === 'expired_leaf' ? at - leafLifeMs - 30 * dayMs : at - 30 * dayMs
  const issuer = kind === 'other_issuer' ? subjects.other : subjects.intermediate
  return issue(
    {
      subject: subjects.leaf,
      serial: serial(world),
      notBefore,
      notAfter: notBefore + leafLifeMs,
      issuer: { subject: issuer, issued: intermediate },
      role: 'leaf',
      marker: kind === 'no_leaf_marker' ? undefined : leafMarker,
      ocspUrl,
    },
    newKey(kind === 'p384_leaf' ? 'P-384' : 'P-256'),
  )
}

/** One certificate that signs alone, as Xcode's does. It outlives every clock that is moved. */
export function newXcodeCertificate(world: Seeded, at: number): Promise<Issued> {
  return issue({
    subject: subjects.xcode,
    serial: serial(world),
    notBefore: at - 30 * dayMs,
    notAfter: at + 30 * yearMs,
    issuer: undefined,
    role: 'leaf',
  })
}

/** Answers for leaves and intermediates both, in the name of whoever issued them. */
export function newResponder(world: Seeded, issuer: Issued, of: 'root' | 'intermediate', at: number): Promise<Issued> {
  return issue({
    subject: subjects.ocsp,
    serial: serial(world),
    notBefore: at - dayMs,
    notAfter: at + leafLifeMs,
    issuer: { subject: subjects[of], issued: issuer },
    role: 'ocsp',
  })
}

function serial(world: Seeded): string {
  return numberId(world, 'certificate', '10', 14)
}
