import { randomBytes, scrypt, timingSafeEqual } from 'node:crypto'
import { promisify } from 'node:util'
import { createGate } from '../kernel/gate.ts'
import { passwordsAtOnce, passwordsWaitingMax } from '../kernel/limits.ts'

const derive = promisify<string, string, number, object, Buffer>(scrypt)
/** About 32 MiB and 50 ms for each guess. */
const cost = { N: 16_384, r: 16, p: 1, maxmem: 64 * 1024 * 1024 }
const keyBytes = 64
const gate = createGate({ atOnce: passwordsAtOnce, waitingMax: passwordsWaitingMax })

/** `<salt hex>:<key hex>`, scrypt over the NFKC form. The salt is used as its hexadecimal text. */
export async function hashPassword(password: string): Promise<string> {
  const salt = randomBytes(16).toString('hex')
  const key = await keyOf(password, salt)
  return `${salt}:${key.toString('hex')}`
}

/** Whether `password` is the one that was hashed, in constant time. */
export async function verifyPassword(password: string, hashed: string): Promise<boolean> {
  const [salt = '', keyHex = ''] = hashed.split(':')
  const key = await keyOf(password, salt)
  const wanted = Buffer.from(keyHex, 'hex')
  return wanted.length === key.length && timingSafeEqual(wanted, key)
}

/** Throws `service_unavailable` when too many wait. */
function keyOf(password: string, salt: string): Promise<Buffer> {
  return gate(() => derive(password.normalize('NFKC'), salt, keyBytes, cost))
}
