import { assert } from '../kernel/assert.ts'

/**
 * What the sign-in library takes for an e-mail address: the hexadecimal of the real one, in lower case, at a host that can't
 * exist. The library's own check knows no `owner@localhost`, and ours stands in one place.
 */
export function addressOf(email: string): string {
  return `${Buffer.from(email.toLowerCase()).toString('hex')}${nowhere}`
}

/** The real one. */
export function emailOf(address: string): string {
  assert(address.endsWith(nowhere), 'the library was given an address')
  return Buffer.from(address.slice(0, -nowhere.length), 'hex').toString()
}

const nowhere = '@address.invalid'
