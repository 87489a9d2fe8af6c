import { betterAuth } from 'better-auth/minimal'
import type { Pool } from '../db/pool.ts'
import { newId } from '../kernel/ids.ts'
import { emailLinkHours, passwordCharsMax, passwordCharsMin, resetLinkHours, sessionDays } from '../kernel/limits.ts'
import { emailOf } from './address.ts'
import { authAdapter } from './auth-store.ts'
import { hashPassword, verifyPassword } from './password.ts'

/** The library, set up for what we use of it. Loading this file loads it: 40 MB that only people's requests need. */
export type Auth = ReturnType<typeof openAuth>

export interface AuthOptions {
  pool: Pool
  /** Signs the tokens that verify addresses. */
  secret: string
  publicUrl: string
  /** Each is awaited before the library answers. */
  mailVerification: (email: string, token: string) => Promise<void>
  mailReset: (email: string, token: string) => Promise<void>
  mailAccountExists: (email: string) => Promise<void>
}

const idPrefixes: Record<string, string> = { user: 'usr', session: 'ses', account: 'cred', verification: 'ver' }
const times = { createdAt: 'created_at', updatedAt: 'updated_at' }

export function openAuth(options: AuthOptions) {
  const { pool, secret, publicUrl, mailVerification, mailReset, mailAccountExists } = options
  const auth = betterAuth({
    baseURL: publicUrl,
    secret,
    database: authAdapter(pool),
    // Everything it has to say comes back as an error; its log would name people.
    logger: { disabled: true },
    telemetry: { enabled: false },
    // Counted by us, over all processes.
    rateLimit: { enabled: false },
    advanced: { database: { generateId: ({ model }) => newId(idPrefixes[model] ?? 'id') } },
    user: { modelName: 'users', fields: { ...times, emailVerified: 'email_verified' } },
    account: {
      modelName: 'user_credential',
      fields: { ...times, userId: 'user_id', providerId: 'provider_id', accountId: 'account_id' },
    },
    session: {
      modelName: 'user_session',
      fields: {
        ...times,
        userId: 'user_id',
        expiresAt: 'expires_at',
        ipAddress: 'ip_address',
        userAgent: 'user_agent',
      },
      expiresIn: sessionDays * 86_400,
    },
    verification: {
      modelName: 'user_verification',
      fields: { ...times, expiresAt: 'expires_at' },
      storeIdentifier: 'hashed',
    },
    emailAndPassword: {
      enabled: true,
      requireEmailVerification: true,
      minPasswordLength: passwordCharsMin,
      maxPasswordLength: passwordCharsMax,
      resetPasswordTokenExpiresIn: resetLinkHours * 3600,
      revokeSessionsOnPasswordReset: true,
      // The library's own format and cost, behind a gate: a flood of sign-ins must not take every core.
      password: { hash: hashPassword, verify: ({ hash, password }) => verifyPassword(password, hash) },
      onExistingUserSignUp: async ({ user }) => {
        if (user.emailVerified) await mailAccountExists(emailOf(user.email))
        else await auth.api.sendVerificationEmail({ body: { email: user.email } })
      },
      sendResetPassword: ({ user, token }) => mailReset(emailOf(user.email), token),
    },
    emailVerification: {
      expiresIn: emailLinkHours * 3600,
      sendOnSignUp: true,
      sendVerificationEmail: ({ user, token }) => mailVerification(emailOf(user.email), token),
    },
  })
  return auth
}
