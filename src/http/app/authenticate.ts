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

/** Whose app a request speaks for. */
export interface Apps {
  /** The app of the publishable key in `carrier`; refuses when `field` names another app or environment. */
  authenticate: (carrier: unknown, field: (lowerCaseName: string) => Field) => AppScope
  /** That the request goes on: the key was used. */
  count: (app: AppScope) => void
  /** The fields that `authenticate` looks at. */
  fieldNames: readonly string[]
}

type Field = string | string[] | undefined

export function openApps({ directory, marks, usage, names }: AppAuthOptions): Apps {
  const appId = names.appIdHeader.toLowerCase()
  const appEnvironment = names.appEnvironmentHeader.toLowerCase()
  const environment = names.environmentHeader.toLowerCase()
  return {
    fieldNames: [appId, appEnvironment, environment],
    authenticate(carrier, field) {
      const app = appOf(directory, keyIn(carrier))
      if (
        differs(field(appId), app.appId) ||
        differs(field(appEnvironment), app.environment) ||
        differs(field(environment), app.environment)
      ) {
        throw refuse('scope_mismatch')
      }
      return app
    },
    count(app) {
      marks.keyUsed('publishable', app.keyId)
      usage.add(app.scopeId, 'requests')
    },
  }
}

/** The publishable key in the body, or in the query of a GET; then whether the request names another app or environment. */
export function authenticateApp(apps: Apps) {
  return async (request: FastifyRequest): Promise<void> => {
    const carrier = request.method === 'POST' ? request.body : request.query
    const app = apps.authenticate(carrier, (name) => request.headers[name])
    apps.count(app)
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

function differs(named: Field, actual: string): boolean {
  return named !== undefined && named !== actual
}
