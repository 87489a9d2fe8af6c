import Type from 'typebox'
import type { SignIn } from '../../tenancy/index.ts'
import { closed } from '../schema.ts'
import type { OpenPost } from './open-endpoint.ts'
import { name } from './parts.ts'
import { email, linkToken, newPassword, showUser, UserObject } from './people-parts.ts'

const tag = 'Users'

/** Nothing here tells whether somebody has an account: only the mail does, and it goes to the address itself. */
export function users(openPost: OpenPost, signIn: SignIn): void {
  openPost(
    {
      path: '/users',
      operationId: 'createUser',
      tag,
      summary: 'Sign up',
      description:
        'Mails a token that verifies the address. The answer is the same for an address that has an account: its owner is told by mail, and gets a new token when it was never verified.',
      body: closed({ email, password: newPassword, name }),
      answers: { 201: UserObject },
    },
    async (body) => ({ status: 201, body: showUser(await signIn.signUp(body)) }),
  )

  openPost(
    {
      path: '/email_verifications',
      operationId: 'verifyEmail',
      tag,
      summary: 'Verify an e-mail address',
      description: 'With the token of the mail, within a day. `POST /users` with the same address mails another one.',
      body: closed({ token: linkToken }),
      answers: { 200: Type.Object({ object: Type.Literal('email_verification'), verified: Type.Literal(true) }) },
    },
    async ({ token }) => {
      await signIn.verifyEmail(token)
      return { status: 200, body: { object: 'email_verification', verified: true } }
    },
  )

  openPost(
    {
      path: '/password_resets',
      operationId: 'requestPasswordReset',
      tag,
      summary: 'Forget a password',
      description: 'Mails a token to the address if it has an account. The answer is always the same.',
      body: closed({ email }),
      answers: { 202: Type.Object({ object: Type.Literal('password_reset'), requested: Type.Literal(true) }) },
    },
    async (body) => {
      await signIn.requestReset(body.email)
      return { status: 202, body: { object: 'password_reset', requested: true } }
    },
  )

  openPost(
    {
      path: '/password_resets/confirm',
      operationId: 'confirmPasswordReset',
      tag,
      summary: 'Set a new password',
      description: 'With the token of the mail, once, within an hour. Every session of the user ends.',
      body: closed({ token: linkToken, password: newPassword }),
      answers: { 200: Type.Object({ object: Type.Literal('password_reset'), confirmed: Type.Literal(true) }) },
    },
    async ({ token, password }) => {
      await signIn.confirmReset(token, password)
      return { status: 200, body: { object: 'password_reset', confirmed: true } }
    },
  )
}
