import { createHmac } from 'node:crypto'

/** The header `Stripe-Signature` for a body, signed at an instant in Unix milliseconds. */
export function signatureOf(secret: string, body: string | Buffer, at: number): string {
  const time = Math.floor(at / 1000)
  const v1 = createHmac('sha256', secret).update(`${time}.`).update(body).digest('hex')
  return `t=${time},v1=${v1}`
}
