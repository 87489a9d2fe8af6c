import { raiseRevs } from '../../customers/index.ts'
import type { Tx } from '../../db/pool.ts'
import { holdCustomers } from '../../entitlements/index.ts'
import { must } from '../../kernel/assert.ts'
import { refuse } from '../../kernel/errors.ts'
import type { Scope } from '../../tenancy/index.ts'
import { applyInputs } from '../apply/apply.ts'
import type { ApplyServices } from '../apply/services.ts'
import type { Ms } from '../types.ts'
import { deletePause, insertPause, selectHolding, selectOpenOf } from './command-store.ts'
import { type JourneyRecord, selectJourneyRecord } from './read-store.ts'

export interface JourneyEdit {
  before: JourneyRecord
  after: JourneyRecord
}

/** Throws `not_found`. */
export async function getJourney(tx: Parameters<typeof selectJourneyRecord>[0], scopes: readonly Scope[], id: string) {
  const journey = await selectJourneyRecord(tx, scopes, id)
  if (!journey) throw refuse('not_found')
  return journey
}

/** Ends it. 409 for one that has ended. */
export async function cancelJourney(
  tx: Tx,
  scopes: readonly Scope[],
  { id, reason, now }: { id: string; reason: string; now: Ms },
  services: ApplyServices,
): Promise<JourneyEdit> {
  return editJourney(tx, scopes, id, async (before, scope) => {
    if (before.status === 'ended') throw refuse('conflict', { message: 'The journey has ended.' })
    await applyInputs(tx, scope, [{ journeyId: before.id, input: { kind: 'cancel', reason } }], now, services)
  })
}

/** As if its next timer were due now. 409 where none runs. */
export async function advanceJourney(
  tx: Tx,
  scopes: readonly Scope[],
  { id, now }: { id: string; now: Ms },
  services: ApplyServices,
): Promise<JourneyEdit> {
  return editJourney(tx, scopes, id, async (before, scope) => {
    const { nextTimer } = before
    if (nextTimer === null) throw refuse('conflict', { message: 'No timer of the journey runs.' })
    const { kind: timer, rev } = nextTimer
    const told = [{ journeyId: before.id, input: { kind: 'timer', timer, rev, advanced: true } as const }]
    await applyInputs(tx, scope, told, now, services)
  })
}

async function editJourney(
  tx: Tx,
  scopes: readonly Scope[],
  id: string,
  edit: (before: JourneyRecord, scope: Scope) => Promise<void>,
): Promise<JourneyEdit> {
  const before = await getJourney(tx, scopes, id)
  const scope = scopes.find(({ scopeId }) => scopeId === before.scopeId)
  if (!scope) throw refuse('not_found')
  await edit(before, scope)
  return { before, after: await getJourney(tx, scopes, id) }
}

/** Nothing begins for the customer, and what is open rests. */
export async function pauseJourneysOf(
  tx: Tx,
  scope: Scope,
  { customerId: asked, now }: { customerId: string; now: Ms },
  services: ApplyServices,
): Promise<void> {
  const customerId = await hold(tx, scope, asked)
  if (!(await insertPause(tx, scope, customerId, now))) return
  const told = (await selectOpenOf(tx, scope, [customerId]))
    .filter(({ held }) => !held)
    .map(({ id }) => ({ journeyId: id, input: { kind: 'hold' } as const }))
  if (told.length > 0) await applyInputs(tx, scope, told, now, services)
  await raiseRevs(tx, [{ scopeId: scope.scopeId, customerId }])
}

/** What rests because its Experience is paused rests on. */
export async function resumeJourneysOf(
  tx: Tx,
  scope: Scope,
  { customerId: asked, now }: { customerId: string; now: Ms },
  services: ApplyServices,
): Promise<void> {
  const customerId = await hold(tx, scope, asked)
  if (!(await deletePause(tx, scope, customerId))) return
  const holding = await selectHolding(tx, scope)
  const told = (await selectOpenOf(tx, scope, [customerId]))
    .filter(({ held, ...of }) => held && !holding.some((one) => isOf(one, of)))
    .map(({ id }) => ({ journeyId: id, input: { kind: 'resume' } as const }))
  if (told.length > 0) await applyInputs(tx, scope, told, now, services)
  await raiseRevs(tx, [{ scopeId: scope.scopeId, customerId }])
}

/** Whoever begins a journey or sweeps keeps the customer: it sees what is done here, or is seen. Gives the record that it is by now. */
async function hold(tx: Tx, scope: Scope, customerId: string): Promise<string> {
  return must((await holdCustomers(tx, scope, [customerId])).get(customerId), 'a survivor for each')
}

function isOf(a: { experienceId: number; appId: string }, b: { experienceId: number; appId: string }): boolean {
  return a.experienceId === b.experienceId && a.appId === b.appId
}
