import { randomBytes, scrypt } from 'node:crypto'
import { promisify } from 'node:util'

const derive = promisify<string, string, number, object, Buffer>(scrypt)
/** About 16 MiB and 50 ms for each guess. */
const cost = { N: 16_384, r: 16, p: 1, maxmem: 64 * 1024 * 1024 }
const keyBytes = 64

/** `<salt hex>:<key hex>`, scrypt over the NFKC form. The salt is used as its hexadecimal text. */
export async function hashPassword(password: string): Promise<string> {
  const salt = randomBytes(16).toString('hex')
  const key = await derive(password.normalize('NFKC'), salt, keyBytes, cost)
  return `${salt}:${key.toString('hex')}`
}
