import { isUuid, uuidV5 } from '../kernel/ids.ts'
import type { Scope } from '../tenancy/index.ts'

/** Any fixed UUID: customer ids are derived from it and must stay equal for ever. */
const root = '6f1d3a52-7c0e-5b84-9a41-2f6c8d0b3e97'
const namespaces = new Map<string, string>()

/**
 * The id a customer is born with, a lower-case UUID: every creator computes the same one without talking to the others.
 * `generation` is 0 unless the distinct id gave birth before and its customer went on under another id.
 */
export function customerIdFor(scope: Scope, distinctId: string, generation: number): string {
  return uuidV5(namespaceOf(scope), `${distinctId}\0${generation}`)
}

/** By project and environment, not by their number in one database: an id survives a move to another one. */
function namespaceOf({ projectId, environment }: Scope): string {
  const key = `${projectId}\0${environment}`
  let namespace = namespaces.get(key)
  if (namespace === undefined) {
    namespace = uuidV5(root, key)
    namespaces.set(key, namespace)
  }
  return namespace
}

const prefix = 'cus_'

/** A customer id as callers see it: `cus_` and the UUID. */
export function wireCustomerId(customerId: string): string {
  return prefix + customerId
}

/** The UUID in a `cus_…` id, lower case; null when the text is none, which callers answer like an unknown customer. */
export function parseCustomerId(text: string): string | null {
  const id = text.slice(prefix.length)
  return text.startsWith(prefix) && isUuid(id) ? id.toLowerCase() : null
}
