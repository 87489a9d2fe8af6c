import { hash } from 'node:crypto'

/** How tokens are known: their own text reaches 16,384 characters, more than an index holds, and is a secret. */
export function tokenKeyOf(token: string): string {
  return hash('sha256', token)
}

/** The tokens that one replaces, the nearest first, and what all of them are known by. */
export interface Chain {
  rootKey: string
  linked: { key: string; token: string }[]
}

/** What a look at one token of a chain finds. */
export type Link =
  /** Stored: its lineage knows where it began. */
  | { kind: 'stored'; rootKey: string }
  /** Not stored; the token that it replaced, by the store. */
  | { kind: 'read'; linkedToken: string | null }
  /** The store has forgotten it: the chain begins there for us. */
  | { kind: 'lost' }
  | { kind: 'unreadable' }

/**
 * Walks from a token to where its chain began, or null when the store cannot tell now. A chain that is longer than anybody's,
 * or that goes in a circle, ends where we stop looking.
 */
export async function walkChain(
  token: string,
  linkedToken: string | null,
  { linksMax, look }: { linksMax: number; look: (token: string) => Promise<Link> },
): Promise<Chain | null> {
  const seen = new Set([tokenKeyOf(token)])
  const linked: Chain['linked'] = []
  let rootKey = tokenKeyOf(token)
  for (let next = linkedToken; next !== null && linked.length < linksMax; ) {
    const key = tokenKeyOf(next)
    if (seen.has(key)) break
    seen.add(key)
    linked.push({ key, token: next })
    rootKey = key
    const link = await look(next)
    if (link.kind === 'unreadable') return null
    if (link.kind === 'stored') return { rootKey: link.rootKey, linked }
    next = link.kind === 'read' ? link.linkedToken : null
  }
  return { rootKey, linked }
}
