import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { type BalanceServices, createBalances } from '../../entitlements/index.ts'
import { errorHandler } from '../errors.ts'
import { apps } from './apps.ts'
import { balances } from './balances.ts'
import { authenticateCaller, type CallerOptions } from './caller.ts'
import { type CustomerServices, customers } from './customers.ts'
import { deadEvents } from './dead-events.ts'
import { endpoints } from './endpoint.ts'
import { entities } from './entities.ts'
import { eventWarnings } from './event-warnings.ts'
import { features } from './features.ts'
import { grants } from './grants.ts'
import { ledger } from './ledger.ts'
import { operations } from './operations.ts'
import { products } from './products.ts'
import { projects } from './projects.ts'
import { publishableKeys } from './publishable-keys.ts'
import type { WorkspaceServices } from './route.ts'

export type WorkspaceApiServices = WorkspaceServices & CallerOptions & CustomerServices & BalanceServices

/** Every Workspace API operation that takes a secret key; mounted at `/v1`. The key is asked for before anything is read. */
export async function workspaceApi(server: FastifyInstance, services: WorkspaceApiServices): Promise<void> {
  const { pool } = services
  server.setErrorHandler(errorHandler('workspace'))
  await server.register(async (keyed) => {
    keyed.decorateRequest('caller', null)
    keyed.addHook('onRequest', authenticateCaller(services))
    keyed.addHook('onRequest', dropTypeOfNoBody)
    const to = endpoints(keyed, services)
    projects(to, pool)
    apps(to, pool)
    publishableKeys(to, pool)
    features(to, pool)
    products(to, pool)
    customers(to, services)
    balances(to, { pool, balances: createBalances(services) })
    ledger(to, pool)
    operations(to, pool)
    grants(to, pool)
    entities(to, pool)
    deadEvents(to, services)
    eventWarnings(to, pool)
  })
}

/** Clients that name a content type on every request send it without a body too; there is nothing to parse then. */
function dropTypeOfNoBody(request: FastifyRequest, _reply: FastifyReply, done: () => void): void {
  const { headers } = request.raw
  if ((headers['content-length'] ?? '0') === '0' && headers['transfer-encoding'] === undefined) {
    delete headers['content-type']
  }
  done()
}
