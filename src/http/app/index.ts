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
export function hotOperations(services: AppApiServices): Operation[] {
  return [profile(services), event(services), entitled(services), featureConsume(services)]
}

/** Every App API operation that needs a publishable key. */
export function appApi(
  server: FastifyInstance,
  services: AppApiServices,
  { apps, hot }: { apps: Apps; hot: Operation[] },
): void {
  server.decorateRequest('app', null)
  server.addHook('preValidation', authenticateApp(apps))
  for (const operation of hot) addOperation(server, operation)
  eventTest(server)
  batch(server, services)
  purchase(server, services)
  introEligibility(server, services)
  status(server, services)
}
