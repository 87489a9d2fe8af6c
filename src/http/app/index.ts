import type { FastifyInstance } from 'fastify'
import { type AppAuthOptions, type Apps, authenticateApp } from './authenticate.ts'
import { type BatchOptions, batch } from './batch.ts'
import { type ConsumeOptions, featureConsume } from './consume.ts'
import { type EntitledOptions, entitled } from './entitled.ts'
import { type EventOptions, event, eventTest } from './event.ts'
import { type IntroEligibilityOptions, introEligibility } from './intro-eligibility.ts'
import { addOperation, type Operation } from './operation.ts'
import { type ProfileOptions, profile } from './profile.ts'
import { type PurchaseOptions, purchase } from './purchase.ts'
import { status } from './status.ts'

export interface AppApiServices
  extends AppAuthOptions,
    EventOptions,
    BatchOptions,
    EntitledOptions,
    ProfileOptions,
    ConsumeOptions,
    IntroEligibilityOptions,
    PurchaseOptions {}

/** What apps ask all day. */
export function hotOperations(services: AppApiServices) {
  return {
    profile: profile(services),
    event: event(services),
    entitled: entitled(services),
    consume: featureConsume(services),
  } satisfies Record<string, Operation>
}

/** Every App API operation that needs a publishable key. */
export function appApi(
  server: FastifyInstance,
  services: AppApiServices,
  { apps, hot }: { apps: Apps; hot: ReturnType<typeof hotOperations> },
): void {
  server.decorateRequest('app', null)
  server.addHook('preValidation', authenticateApp(apps))
  addOperation(server, hot.profile)
  addOperation(server, hot.event)
  eventTest(server)
  batch(server, services)
  addOperation(server, hot.entitled)
  addOperation(server, hot.consume)
  purchase(server, services)
  introEligibility(server, services)
  status(server, services)
}
