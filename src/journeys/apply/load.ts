import type { Tx } from '../../db/pool.ts'
import { assign } from '../../experiences/index.ts'
import { must } from '../../kernel/assert.ts'
import type { Scope } from '../../tenancy/index.ts'
import { selectGrantable } from '../store/facts-store.ts'
import { selectLegs } from '../store/leg-store.ts'
import type { Ms, Needs } from '../types.ts'
import { loadCustomerFacts } from './customer-facts.ts'
import type { ApplyServices } from './services.ts'
import type { Work } from './work.ts'

/** Loads what decisions asked for, one question of each kind for all of them. */
export async function load(
  tx: Tx,
  scope: Scope,
  needing: readonly { work: Work; needs: Needs }[],
  now: Ms,
  services: ApplyServices,
): Promise<void> {
  await loadLegs(tx, scope, needing)
  const asking = needing.filter(({ needs }) => needs.customer)
  if (asking.length > 0) {
    const whose = asking.map(({ work }) => ({ plan: must(work.plan, 'it has one'), ...whoseOf(work) }))
    const facts = await loadCustomerFacts(tx, scope, whose, now, services)
    for (const { work } of asking) {
      work.facts = { ...work.facts, customer: must(facts.get(customerOf(work)), 'each is loaded') }
    }
  }
  await loadAssignments(tx, scope, needing, now)
  const wanted = [...new Set(needing.flatMap(({ needs }) => needs.grantable ?? []))]
  if (wanted.length === 0) return
  const there = await selectGrantable(tx, scope, wanted)
  for (const { work, needs } of needing) {
    const answers = (needs.grantable ?? []).map((key) => [key, there.has(key)] as const)
    work.facts = { ...work.facts, grantable: { ...work.facts.grantable, ...Object.fromEntries(answers) } }
  }
}

async function loadLegs(tx: Tx, { scopeId }: Scope, needing: readonly { work: Work; needs: Needs }[]): Promise<void> {
  const keys = needing.flatMap(({ work: { journeyId }, needs: { leg } }) =>
    leg === undefined ? [] : [{ scopeId, journeyId, generation: leg }],
  )
  if (keys.length === 0) return
  const found = await selectLegs(tx.client, keys)
  const byKey = new Map(found.map(({ journeyId, leg }) => [`${journeyId} ${leg.generation}`, leg]))
  for (const { work, needs } of needing) {
    if (needs.leg !== undefined) work.legs.set(needs.leg, byKey.get(`${work.journeyId} ${needs.leg}`) ?? null)
  }
}

/** Made now, at a split that the customer has come to: whoever never comes to one stays out of the count. */
async function loadAssignments(
  tx: Tx,
  scope: Scope,
  needing: readonly { work: Work; needs: Needs }[],
  now: Ms,
): Promise<void> {
  const questions = needing.flatMap(({ work, needs }) =>
    (needs.assignments ?? []).map((experimentId) => ({ experimentId, customerId: customerOf(work) })),
  )
  if (questions.length === 0) return
  const assignments = await assign(tx, scope, questions, now)
  for (const { work, needs } of needing) {
    if (!needs.assignments) continue
    const own = assignments.get(customerOf(work)) ?? {}
    const asked = needs.assignments.map((id) => [id, own[id] ?? null] as const)
    work.facts = { ...work.facts, assignments: { ...work.facts.assignments, ...Object.fromEntries(asked) } }
  }
}

function customerOf(work: Work): string {
  return whoseOf(work).customerId
}

function whoseOf({ journey, told: [first] }: Work): { customerId: string; appId: string } {
  const { customerId, appId } = must(
    journey ?? (first?.input.kind === 'enrol' ? first.input : null),
    'a journey or an enrolment',
  )
  return { customerId, appId }
}
