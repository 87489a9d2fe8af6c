import { createPrivateKey, createPublicKey } from 'node:crypto'
import { decodeProtectedHeader, jwtVerify } from 'jose'
import type { Handler, Request } from '../http/router.ts'
import { Refusal } from '../refusal.ts'
import type { Sim } from '../world.ts'
import { appleApps } from './app.ts'
import type { AppleApp } from './types.ts'

const lifeSecondsMax = 3600

/** The app that a bearer names, when the App Store Server API would let it in. */
export async function authenticate(sim: Sim, { headers }: Request): Promise<AppleApp> {
  const token = /^Bearer (\S+)$/.exec(headers.authorization ?? '')?.[1]
  if (token === undefined) throw unauthenticated()
  const { issuerId, keyId, privateKey } = sim.world.keys.apiKey
  try {
    const key = createPublicKey(createPrivateKey(privateKey))
    const { payload } = await jwtVerify(token, key, {
      algorithms: ['ES256'],
      issuer: issuerId,
      audience: 'appstoreconnect-v1',
      currentDate: new Date(sim.wall()),
      requiredClaims: ['iat', 'exp', 'bid'],
      maxTokenAge: lifeSecondsMax,
    })
    if (decodeProtectedHeader(token).kid !== keyId) throw unauthenticated()
    if ((payload.exp ?? 0) - (payload.iat ?? 0) > lifeSecondsMax) throw unauthenticated()
    const app = appleApps(sim.world).find(({ id }) => id === payload.bid)
    if (app === undefined) throw unauthenticated()
    return app
  } catch {
    throw unauthenticated()
  }
}

export function withBearer(handler: (sim: Sim, app: AppleApp, request: Request) => ReturnType<Handler>): Handler {
  return async (sim, request) => handler(sim, await authenticate(sim, request), request)
}

function unauthenticated(): Refusal {
  return new Refusal(401, 'Unauthenticated\n')
}
