import { createPrivateKey, createPublicKey, randomBytes } from 'node:crypto'
import { jwtVerify } from 'jose'
import type { Handler, Request, Routes } from '../http/router.ts'
import { oidcJwk } from '../pki/keys.ts'
import { googleError, Refusal } from '../refusal.ts'
import type { Sim } from '../world.ts'
import { playApps } from './app.ts'
import type { PlayApp } from './types.ts'

const scope = 'https://www.googleapis.com/auth/androidpublisher'
const grantType = 'urn:ietf:params:oauth:grant-type:jwt-bearer'
const lifeSeconds = 3600

/** Bearers given out, by the wall clock: a restart forgets them, and callers fetch new ones after their 401. */
const bearers = new WeakMap<object, Map<string, number>>()

export const oauth: Routes = {
  'POST /play/token': async (sim, { bytes }) => {
    const form = new URLSearchParams(bytes.toString('utf8'))
    if (form.get('grant_type') !== grantType) throw denied('unsupported_grant_type', 'Invalid grant_type')
    await verifyAssertion(sim, form.get('assertion') ?? '')
    const bearer = `ya29.sim-${randomBytes(24).toString('base64url')}`
    for (const [old, until] of bearersOf(sim)) if (until <= sim.wall()) bearersOf(sim).delete(old)
    bearersOf(sim).set(bearer, sim.wall() + lifeSeconds * 1000)
    return { body: { access_token: bearer, expires_in: lifeSeconds, token_type: 'Bearer' } }
  },

  'GET /play/oauth2/v3/certs': async (sim) => ({
    headers: { 'cache-control': 'public, max-age=3600' },
    body: { keys: [await oidcJwk(sim.world.keys)] },
  }),
}

async function verifyAssertion(sim: Sim, assertion: string): Promise<void> {
  const { serviceAccount } = sim.world.keys
  const key = createPublicKey(createPrivateKey(serviceAccount.privateKey))
  const { payload } = await jwtVerify(assertion, key, {
    algorithms: ['RS256'],
    issuer: serviceAccount.email,
    audience: `${sim.url}/play/token`,
    currentDate: new Date(sim.wall()),
    requiredClaims: ['iat', 'exp'],
  }).catch((error: unknown) => {
    throw denied('invalid_grant', `Invalid JWT: ${String(error)}`)
  })
  if ((payload.exp ?? 0) - (payload.iat ?? 0) > lifeSeconds)
    throw denied('invalid_grant', 'Invalid JWT: it lives too long')
  if ((payload.iat ?? 0) * 1000 > sim.wall() + 60_000)
    throw denied('invalid_grant', 'Invalid JWT: iat is in the future')
  if (payload.scope !== scope) throw denied('invalid_scope', 'Invalid OAuth scope.')
}

/** The app that a path names, when the bearer opens it. */
export function withPlayBearer(handler: (sim: Sim, app: PlayApp, request: Request) => ReturnType<Handler>): Handler {
  return (sim, request) => {
    const bearer = /^Bearer (\S+)$/.exec(request.headers.authorization ?? '')?.[1] ?? ''
    if ((bearersOf(sim).get(bearer) ?? 0) <= sim.wall())
      throw googleError(401, 'Request had invalid authentication credentials.', 'UNAUTHENTICATED', 'authError')
    const app = playApps(sim.world).find(({ id }) => id === request.params.package)
    if (app === undefined)
      throw googleError(404, `No application was found for the given package name.`, 'NOT_FOUND', 'applicationNotFound')
    return handler(sim, app, request)
  }
}

function bearersOf(sim: Sim): Map<string, number> {
  const known = bearers.get(sim.world) ?? new Map<string, number>()
  bearers.set(sim.world, known)
  return known
}

function denied(error: string, error_description: string): Refusal {
  return new Refusal(400, { error, error_description })
}
