import type { FastifyRequest } from 'fastify'
import { refuse } from '../../kernel/errors.ts'
import type { WireNames } from '../../kernel/wire-names.ts'
import { type AppScope, type Directory, looksLikeSecretKey, type Marks, type UsageTally } from '../../tenancy/index.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** Set by `authenticateApp` before validation: 401 comes before 400 for a field. */
    app: AppScope | null
  }
}

export interface AppAuthOptions {
  directory: Directory
  marks: Marks
  usage: UsageTally
  names: WireNames
}

/** The publishable key in the body, or in the query of a GET; then whether the request names another app or environment. */
export function authenticateApp({ directory, marks, usage, names }: AppAuthOptions) {
  const appIdHeader = names.appIdHeader.toLowerCase()
  const appEnvironmentHeader = names.appEnvironmentHeader.toLowerCase()
  const environmentHeader = names.environmentHeader.toLowerCase()

  return async (request: FastifyRequest): Promise<void> => {
    const app = appOf(directory, keyIn(request.method === 'POST' ? request.body : request.query))
    const { headers } = request
    if (
      differs(headers[appIdHeader], app.appId) ||
      differs(headers[appEnvironmentHeader], app.environment) ||
      differs(headers[environmentHeader], app.environment)
    ) {
      throw refuse('scope_mismatch')
    }
    marks.keyUsed('publishable', app.keyId)
    usage.add(app.scopeId, 'requests')
    request.app = app
  }
}

function keyIn(carrier: unknown): unknown {
  if (typeof carrier !== 'object' || carrier === null) {
    throw refuse('invalid_request', { message: 'A JSON body with Content-Type application/json is required.' })
  }
  return Object.hasOwn(carrier, 'apiKey') ? (carrier as { apiKey: unknown }).apiKey : undefined
}

function appOf(directory: Directory, key: unknown): AppScope {
  if (typeof key !== 'string') throw refuse('invalid_api_key')
  const app = directory.app(key)
  if (!app) throw refuse(looksLikeSecretKey(key) ? 'key_kind_invalid' : 'invalid_api_key')
  return app
}

function differs(named: string | string[] | undefined, actual: string): boolean {
  return named !== undefined && named !== actual
}
