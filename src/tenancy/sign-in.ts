import { createHmac } from 'node:crypto'
import type { Logger } from 'pino'
import type { Pool } from '../db/pool.ts'
import { type Refusal, refuse } from '../kernel/errors.ts'
import { createGate } from '../kernel/gate.ts'
import { resetsWaitingMax } from '../kernel/limits.ts'
import { addressOf } from './address.ts'
import type { Auth } from './auth.ts'
import { queueMail } from './mail.ts'
import { accountExistsMail, resetMail, verificationMail } from './mail-texts.ts'
import { selectPassword } from './session-store.ts'
import { endSession, findSession } from './sessions.ts'
import type { Session, User } from './types.ts'

/** How people come to a session. Nothing of it tells a stranger whether an address has an account. */
export interface SignIn {
  /** Mails a token that verifies the address. For an address with an account, its owner is told, and the answer is made up. */
  signUp(person: { email: string; password: string; name: string }): Promise<User>
  /** Throws `invalid_request` for a token that is none, or too old. */
  verifyEmail(token: string): Promise<void>
  /** Throws `invalid_credentials`, `email_verification_required`, `token_create_failed`. */
  createSession(credentials: { email: string; password: string }): Promise<Session & { token: string }>
  /** Answers before it looks: how long it takes tells nothing. Throws `service_unavailable` when too many wait. */
  requestReset(email: string): Promise<void>
  /** Ends every session of the user. Throws `invalid_request` for a token that is none, used, or too old. */
  confirmReset(token: string, password: string): Promise<void>
}

export interface SignInOptions {
  pool: Pool
  sealingKey: Buffer
  publicUrl: string
  log: Logger
}

/** The library behind it is loaded by the first request that needs it. */
export function openSignIn({ pool, sealingKey, publicUrl, log }: SignInOptions): SignIn & AsyncDisposable {
  const secret = createHmac('sha256', sealingKey).update('sign-in').digest('base64url')
  const resets = createGate({ atOnce: 1, waitingMax: resetsWaitingMax })
  const underWay = new Set<Promise<void>>()
  let opened: Promise<Auth> | undefined

  function library(): Promise<Auth> {
    opened ??= import('./auth.ts').then(({ openAuth }) =>
      openAuth({
        pool,
        secret,
        publicUrl,
        mailVerification: (to, token) => queueMail(pool, sealingKey, verificationMail(to, { publicUrl, token })),
        mailReset: (to, token) => queueMail(pool, sealingKey, resetMail(to, { publicUrl, token })),
        mailAccountExists: (to) => queueMail(pool, sealingKey, accountExistsMail(to, { publicUrl })),
      }),
    )
    return opened
  }

  return {
    async signUp({ email, password, name }) {
      const { api } = await library()
      const body = { email: addressOf(email), password, name }
      const { user } = await api.signUpEmail({ body }).catch((error: unknown) => {
        throw translated(error)
      })
      return { id: user.id, email: email.toLowerCase(), name, emailVerified: false, createdAt: user.createdAt }
    },

    async verifyEmail(token) {
      const { api } = await library()
      await api.verifyEmail({ query: { token } }).catch((error: unknown) => {
        throw translated(error, linkRefusal)
      })
    },

    async createSession({ email, password }) {
      const { api } = await library()
      const before = await selectPassword(pool, email)
      const { token } = await api
        .signInEmail({ body: { email: addressOf(email), password } })
        .catch((error: unknown) => {
          throw translated(error, signInRefusal)
        })
      const session = await findSession(pool, token, null)
      // Whoever changes a password ends the sessions there are: one that was verified before may begin only after that.
      const isStill = (await selectPassword(pool, email)) === before
      if (session && isStill) return { ...session, token }
      if (session) await endSession(pool, session.id)
      throw refuse('invalid_credentials')
    },

    async requestReset(email) {
      if (underWay.size >= resetsWaitingMax) throw refuse('service_unavailable', { retryAfterS: 1 })
      const work = resets(async () => {
        const { api } = await library()
        await api.requestPasswordReset({ body: { email: addressOf(email) } })
      }).catch((error: unknown) => {
        log.warn({ err: error }, 'a password reset could not be prepared')
      })
      underWay.add(work)
      void work.finally(() => underWay.delete(work))
    },

    async confirmReset(token, password) {
      const { api } = await library()
      await api.resetPassword({ body: { token, newPassword: password } }).catch((error: unknown) => {
        throw translated(error, linkRefusal)
      })
    },

    async [Symbol.asyncDispose]() {
      await Promise.all(underWay)
    },
  }
}

/** Of the library's errors, as far as we use them. */
interface LibraryError {
  body?: { code?: string }
  message: string
}

/** Why nobody is signed in; whatever the library may think of besides, its words go to the caller. */
export function signInRefusal({ body, message }: LibraryError): Refusal {
  if (body?.code === 'INVALID_EMAIL_OR_PASSWORD') return refuse('invalid_credentials')
  if (body?.code === 'EMAIL_NOT_VERIFIED') return refuse('email_verification_required')
  return refuse('token_create_failed', { message })
}

function linkRefusal(error: LibraryError): unknown {
  const known = /^(INVALID_TOKEN|TOKEN_EXPIRED|USER_NOT_FOUND)$/.test(error.body?.code ?? '')
  return known ? refuse('invalid_request', { param: 'token', message: 'token is not valid, or too old' }) : error
}

/** What was thrown through the library, such as by the database, as it was; what it threw itself in our words. */
function translated(error: unknown, words: (error: LibraryError) => unknown = (same) => same): unknown {
  if (!(error instanceof Error) || error.name !== 'APIError') return error
  return error.cause instanceof Error ? error.cause : words(error)
}
