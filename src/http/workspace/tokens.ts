import Type from 'typebox'
import { endSession, type SignIn } from '../../tenancy/index.ts'
import { closed, instant, nullable } from '../schema.ts'
import { sessionOf } from './caller.ts'
import type { Endpoints } from './endpoint.ts'
import type { OpenPost } from './open-endpoint.ts'
import { email, password } from './people-parts.ts'

const TokenObject = Type.Object(
  {
    object: Type.Literal('token'),
    token: Type.String({ description: 'Bearer token of the session. Shown once.' }),
    expires_at: nullable(instant),
    user: Type.Object({ id: Type.String(), email: Type.String(), name: Type.String() }),
  },
  { title: 'Token' },
)
const tag = 'Sessions'

export function tokens({ delete: remove }: Endpoints, openPost: OpenPost, signIn: SignIn): void {
  openPost(
    {
      path: '/tokens',
      operationId: 'createToken',
      tag,
      summary: 'Sign in',
      description:
        'A session of a user whose e-mail address is verified. A wrong password and an unknown address are answered alike.',
      body: closed({ email, password }),
      answers: { 201: TokenObject },
      errors: [401, 403],
    },
    async (body) => {
      const { token, expiresAt, user } = await signIn.createSession(body)
      return {
        status: 201,
        body: {
          object: 'token',
          token,
          expires_at: expiresAt.toISOString(),
          user: { id: user.id, email: user.email, name: user.name },
        },
      }
    },
  )

  remove(
    {
      path: '/tokens/current',
      operationId: 'revokeToken',
      tag,
      summary: 'Sign out',
      description: 'Ends the session whose token this request carries.',
      by: 'session',
      verified: false,
      answers: {
        200: Type.Object({ object: Type.Literal('token'), revoked: Type.Literal(true) }),
      },
    },
    async ({ tx, caller }) => {
      await endSession(tx, sessionOf(caller).id)
      return { status: 200, body: { object: 'token', revoked: true } }
    },
  )
}
