import Type from 'typebox'
import { emailCharsMax, passwordCharsMax, passwordCharsMin } from '../../kernel/limits.ts'
import type { User } from '../../tenancy/index.ts'
import { instant, oneOf } from '../schema.ts'

/** Schema parts of the operations on people. */

export const email = Type.String({
  minLength: 3,
  maxLength: emailCharsMax,
  pattern: '^[^\\s@]+@[^\\s@]+$',
  'x-storable': true,
  description: 'Upper and lower case are the same.',
})

/** A new one. The form in which it is typed does not matter: it is compared in Unicode NFKC. */
export const newPassword = Type.String({
  minLength: passwordCharsMin,
  maxLength: passwordCharsMax,
  'x-storable': true,
  format: 'password',
})

/** One that is tried. */
export const password = Type.String({
  minLength: 1,
  maxLength: passwordCharsMax,
  'x-storable': true,
  format: 'password',
})

export const linkToken = Type.String({ minLength: 1, maxLength: 2048, description: 'From the mail.' })

export const role = oneOf('owner', 'admin', 'member')

export const UserObject = Type.Object(
  {
    object: Type.Literal('user'),
    id: Type.String(),
    email: Type.String(),
    name: Type.String(),
    email_verified: Type.Boolean(),
    created_at: instant,
  },
  { title: 'User' },
)

export function showUser(user: User): Type.Static<typeof UserObject> {
  const { id, email, name, emailVerified, createdAt } = user
  return { object: 'user', id, email, name, email_verified: emailVerified, created_at: createdAt.toISOString() }
}
