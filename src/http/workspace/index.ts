import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { type BalanceServices, createBalances } from '../../entitlements/index.ts'
import type { SignIn } from '../../tenancy/index.ts'
import { errorHandler } from '../errors.ts'
import { apiKeys } from './api-keys.ts'
import { apps } from './apps.ts'
import { artifacts } from './artifacts.ts'
import { auditLog } from './audit-log.ts'
import { balances } from './balances.ts'
import { builds } from './builds.ts'
import { authenticateCaller, type CallerOptions } from './caller.ts'
import { customerChanges } from './customer-changes.ts'
import { type CustomerProfileServices, customerProfile } from './customer-profile.ts'
import { type CustomerServices, customers } from './customers.ts'
import { deadEvents } from './dead-events.ts'
import { deadNotifications } from './dead-notifications.ts'
import { drafts } from './drafts.ts'
import { endpoints } from './endpoint.ts'
import { entities } from './entities.ts'
import { eventExports } from './event-exports.ts'
import { eventNames } from './event-names.ts'
import { type EventQueryServices, eventQueries } from './event-queries.ts'
import { eventWarnings } from './event-warnings.ts'
import { type EventServices, events } from './events.ts'
import { experiences } from './experiences.ts'
import { type ExperimentServices, experiments } from './experiments.ts'
import { features } from './features.ts'
import { grants } from './grants.ts'
import { type InvitationServices, invitations } from './invitations.ts'
import { journeyQuarantine } from './journey-quarantine.ts'
import { type JourneyApiServices, journeys } from './journeys.ts'
import { ledger } from './ledger.ts'
import { members } from './members.ts'
import { type MergeServices, merges } from './merges.ts'
import { openEndpoints } from './open-endpoint.ts'
import { operations } from './operations.ts'
import { products } from './products.ts'
import { projects } from './projects.ts'
import { publishableKeys } from './publishable-keys.ts'
import { type PurchaseServices, purchases } from './purchases.ts'
import { limitRate, type RateLimitOptions } from './rate-limit.ts'
import type { WorkspaceServices } from './route.ts'
import { type SegmentServices, segments } from './segments.ts'
import { signingKeys } from './signing-keys.ts'
import { type StartServices, starts } from './starts.ts'
import { type CredentialServices, storeCredentials } from './store-credentials.ts'
import { storeSettings } from './store-settings.ts'
import { tokens } from './tokens.ts'
import { usageStats } from './usage-stats.ts'
import { users } from './users.ts'
import { type VersionServices, versions } from './versions.ts'
import { webhookEndpoints } from './webhook-endpoints.ts'
import { workspaces } from './workspaces.ts'

export type WorkspaceApiServices = WorkspaceServices &
  CallerOptions &
  CustomerServices &
  CustomerProfileServices &
  MergeServices &
  BalanceServices &
  EventServices &
  EventQueryServices &
  InvitationServices &
  VersionServices &
  ExperimentServices &
  PurchaseServices &
  CredentialServices &
  JourneyApiServices &
  StartServices &
  SegmentServices &
  RateLimitOptions & { signIn: SignIn }

/**
 * Every operation of the Workspace API; mounted at `/v1`. The key or session is asked for before anything is read, but by the
 * few operations that lead to a session.
 */
export async function workspaceApi(server: FastifyInstance, services: WorkspaceApiServices): Promise<void> {
  const { pool, signIn } = services
  server.setErrorHandler(errorHandler('workspace'))
  const openPost = openEndpoints(server, services)
  users(openPost, signIn)
  await server.register(async (keyed) => {
    keyed.decorateRequest('caller', null)
    keyed.addHook('onRequest', authenticateCaller(services))
    keyed.addHook('onRequest', limitRate(services))
    keyed.addHook('onRequest', dropTypeOfNoBody)
    const to = endpoints(keyed, services)
    tokens(to, openPost, signIn)
    workspaces(to, pool)
    apiKeys(to, pool)
    members(to, pool)
    invitations(to, services)
    projects(to, pool)
    apps(to, pool)
    publishableKeys(to, pool)
    storeCredentials(to, services)
    storeSettings(to, services)
    features(to, pool)
    products(to, pool)
    customers(to, services)
    customerProfile(to, services)
    merges(to, services)
    segments(to, services)
    customerChanges(to, pool)
    balances(to, { pool, balances: createBalances(services) })
    ledger(to, pool)
    auditLog(to, pool)
    usageStats(to, pool)
    operations(to, pool)
    grants(to, pool)
    entities(to, pool)
    purchases(to, services)
    deadNotifications(to, services)
    experiences(to, services)
    drafts(to, services)
    versions(to, services)
    experiments(to, services)
    builds(to, pool)
    await keyed.register(async (uploads) => artifacts(uploads, services))
    starts(to, services)
    journeys(to, services)
    journeyQuarantine(to, pool)
    signingKeys(to, services)
    webhookEndpoints(to, services)
    events(to, services)
    eventQueries(to, services)
    eventNames(to, services.listPool)
    eventExports(to, pool)
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
