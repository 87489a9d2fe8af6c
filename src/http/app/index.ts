import type { FastifyInstance } from 'fastify'
import type { AccessAnswer, AccessQuery } from '../../entitlements/index.ts'
import { type AppAuthOptions, authenticateApp } from './authenticate.ts'
import { type BatchOptions, batch } from './batch.ts'
import { type ConsumeOptions, featureConsume } from './consume.ts'
import { entitled } from './entitled.ts'
import { type EventOptions, event } from './event.ts'
import { type IntroEligibilityOptions, introEligibility } from './intro-eligibility.ts'
import { type ProfileOptions, profile } from './profile.ts'
import { type PurchaseOptions, purchase } from './purchase.ts'
import { status } from './status.ts'

export interface AppApiServices
  extends AppAuthOptions,
    EventOptions,
    BatchOptions,
    ProfileOptions,
    ConsumeOptions,
    IntroEligibilityOptions,
    PurchaseOptions {
  check: (query: AccessQuery) => Promise<AccessAnswer>
}

/** Every App API operation that needs a publishable key. */
export function appApi(server: FastifyInstance, services: AppApiServices): void {
  server.decorateRequest('app', null)
  server.addHook('preValidation', authenticateApp(services))
  profile(server, services)
  event(server, services)
  batch(server, services)
  entitled(server, services.check)
  featureConsume(server, services)
  purchase(server, services)
  introEligibility(server, services)
  status(server, services)
}
