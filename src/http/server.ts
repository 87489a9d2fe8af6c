import type { IncomingMessage, ServerResponse } from 'node:http'
import Fastify, {
  type FastifyBaseLogger,
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  LogController,
} from 'fastify'
import type { Logger } from 'pino'
import { refuse } from '../kernel/errors.ts'
import { bodyBytesMax, bodyReceiveMsMax } from '../kernel/limits.ts'
import { type ArtefactOptions, artefacts as addArtefacts } from './app/artefacts.ts'
import { openApps } from './app/authenticate.ts'
import { health as addHealth, type HealthOptions } from './app/health.ts'
import { type AppApiServices, appApi, hotOperations } from './app/index.ts'
import { metrics as addMetrics, type MetricsOptions } from './app/metrics.ts'
import { releaseKeys as addReleaseKeys, type ReleaseKeysOptions } from './app/release-keys.ts'
import { addJsonBodyParser } from './body.ts'
import { allowBrowsers } from './cors.ts'
import { errorHandler, sendRefusal, styleOf, toRefusal } from './errors.ts'
import { refuseMalformed } from './malformed.ts'
import { noteMethods } from './methods.ts'
import { answerPlainly } from './plain/answer-plainly.ts'
import { requestId } from './request-id.ts'
import { workspaceHeaders } from './security.ts'
import { validatorCompiler } from './validator.ts'
import { webhooks as addWebhooks, type WebhookServices } from './webhooks.ts'
import { type WorkspaceApiServices, workspaceApi } from './workspace/index.ts'

export interface ServerOptions {
  log: Logger
  health: HealthOptions
  metrics: MetricsOptions
  app: AppApiServices & ReleaseKeysOptions & ArtefactOptions
  workspace: WorkspaceApiServices
  webhooks: WebhookServices
  /** Adds what is not part of either API, such as the reference pages. */
  extend: (server: FastifyInstance) => void
  /** Runs in the scope of each API before its routes are added. */
  describe?: (scope: FastifyInstance, api: 'app' | 'workspace') => Promise<void>
}

/** The HTTP surface: App API at `/`, Workspace API at `/v1`. Not yet listening. */
export async function createServer({
  log,
  health,
  metrics,
  app,
  workspace,
  webhooks,
  extend,
  describe,
}: ServerOptions): Promise<FastifyInstance> {
  const server = bareServer(log)
  addJsonBodyParser(server)
  const note = addMetrics(server, metrics)
  const [apps, hot] = [openApps(app), hotOperations(app)]
  answerPlainly(server, { hot: Object.values(hot), apps, note, log })
  await server.register(async (scope) => {
    await describe?.(scope, 'app')
    const { appIdHeader, appEnvironmentHeader, environmentHeader } = app.names
    allowBrowsers(scope, {
      exposedHeaders: ['ETag', appIdHeader, appEnvironmentHeader, 'X-Request-Id', 'Retry-After'],
      // What a request may name its app and environment by: see authenticateApp.
      requestHeaders: [appIdHeader, appEnvironmentHeader, environmentHeader],
    })
    addHealth(scope, health)
    addReleaseKeys(scope, app)
    addArtefacts(scope, app)
    await scope.register(async (keyed) => appApi(keyed, app, { apps, hot }))
  })
  await server.register(
    async (scope) => {
      await describe?.(scope, 'workspace')
      await workspaceApi(scope, workspace)
    },
    { prefix: '/v1' },
  )
  addWebhooks(server, webhooks)
  extend(server)
  return server
}

/** What a process without the App API serves: liveness, readiness and metrics. */
export function createHealthServer({
  log,
  health,
  metrics,
  receiveMsMax,
}: Pick<ServerOptions, 'log' | 'health' | 'metrics'> & { receiveMsMax?: number }): FastifyInstance {
  const server = bareServer(log, receiveMsMax)
  addMetrics(server, metrics)
  addHealth(server, health)
  return server
}

function bareServer(log: Logger, receiveMsMax = bodyReceiveMsMax): FastifyInstance {
  const server = Fastify({
    loggerInstance: log as FastifyBaseLogger, // pino is what the framework logs with
    logController: new LogController({ disableRequestLogging: true }),
    bodyLimit: bodyBytesMax,
    requestTimeout: receiveMsMax,
    genReqId: ({ headers }) => requestId(headers['x-request-id']),
    routerOptions: { maxParamLength: 2048 },
    return503OnClosing: false,
    forceCloseConnections: 'idle',
    http: {
      connectionsCheckingInterval: Math.min(receiveMsMax, 5000),
      // Of the two timeouts Node takes the longer one for the whole request; this one is a minute unless set.
      headersTimeout: receiveMsMax,
      // A missing Host is refused below, in our words.
      requireHostHeader: false,
    },
    clientErrorHandler: refuseMalformed,
    // A path that can't be decoded or is too long: no route, and so no hook, has seen it.
    frameworkErrors: (error, request, reply) => {
      addCommonHeaders(request, reply)
      sendRefusal(styleOf(request), toRefusal(error), request, reply)
    },
  })
  server.setValidatorCompiler(validatorCompiler())
  server.setSerializerCompiler(() => JSON.stringify)
  server.setErrorHandler(errorHandler('app'))
  const methodsAt = noteMethods(server)
  const answerNotFound = (request: FastifyRequest, reply: FastifyReply) => {
    const allowed = methodsAt(request.url)
    if (allowed !== undefined) reply.header('allow', allowed)
    const refusal =
      allowed === undefined
        ? refuse('not_found', { message: 'There is nothing at this path.' })
        : refuse('method_not_allowed')
    sendRefusal(styleOf(request), refusal, request, reply)
  }
  server.setNotFoundHandler(answerNotFound)
  server.addHook('onRequest', (request, reply, done) => {
    addCommonHeaders(request, reply)
    // Before a body is read: whatever it is, this is the answer.
    if (request.headers.host === undefined && request.raw.httpVersion === '1.1') {
      sendRefusal(
        styleOf(request),
        refuse('invalid_request', { message: 'The header Host is missing.' }),
        request,
        reply,
      )
    } else if (request.is404) answerNotFound(request, reply)
    else done()
  })
  server.server.on('checkExpectation', refuseExpectation)
  return server
}

function addCommonHeaders(request: FastifyRequest, reply: FastifyReply): void {
  reply.header('x-request-id', request.id)
  if (styleOf(request) === 'workspace') reply.headers(workspaceHeaders)
}

/** `Expect` with anything but `100-continue`, which Node answers by itself. */
function refuseExpectation(request: IncomingMessage, response: ServerResponse): void {
  const common = { code: 'invalid_request', message: 'The expectation of the header Expect cannot be met.' }
  const id = requestId(request.headers['x-request-id'])
  const isWorkspace = request.url?.startsWith('/v1/') === true
  const body = isWorkspace ? { error: { ...common, request_id: id } } : { ...common, request_id: id }
  response.writeHead(417, {
    'content-type': 'application/json; charset=utf-8',
    'x-request-id': id,
    connection: 'close',
  })
  response.end(JSON.stringify(body))
}
