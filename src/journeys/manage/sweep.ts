import { keepCustomers } from '../../customers/index.ts'
import type { Pool } from '../../db/pool.ts'
import { sweepJourneysAtOnce } from '../../kernel/limits.ts'
import { applyInputs } from '../apply/apply.ts'
import { pinnedPlans } from '../apply/pinned-plans.ts'
import type { ApplyServices } from '../apply/services.ts'
import { selectPaused } from '../enrol/enrol-store.ts'
import type { Input, Ms } from '../types.ts'
import { type OpenJourney, selectOpenIn } from './command-store.ts'
import { advanceSweep, endSweep, lockSweep, type Sweep } from './sweep-store.ts'

/** Tells the next journeys of the oldest command. False: there is none. */
export async function takeSweep(pool: Pool, now: Ms, services: ApplyServices): Promise<boolean> {
  return pool.transaction(async (tx) => {
    const sweep = await lockSweep(tx)
    if (!sweep) return false
    const { scope, experienceId, appId, afterId, at } = sweep
    const where = { experienceId, appId, begunBy: at, after: afterId, limit: sweepJourneysAtOnce }
    const journeys = await selectOpenIn(tx, scope, where)
    const last = journeys.at(-1)
    const { buildId } = sweep
    const plan = buildId === null ? undefined : (await pinnedPlans(tx, scope, [{ appId, buildId }])).get(buildId)
    const input = inputOf(sweep, plan)
    const customerIds = journeys.map(({ customerId }) => customerId)
    // Whoever lets one of them rest, or go on, holds it: what is done there is seen here, or waits for this.
    await keepCustomers(tx, scope, customerIds)
    const paused = await selectPaused(tx, scope, customerIds)
    // Whoever's journeys rest by themselves rests on.
    const isTold = ({ customerId }: OpenJourney) => sweep.kind !== 'resume' || !paused.has(customerId)
    if (input) {
      const told = journeys.filter(isTold).map(({ id }) => ({ journeyId: id, input }))
      if (told.length > 0) await applyInputs(tx, scope, told, now, services)
    }
    if (last && journeys.length === sweepJourneysAtOnce) await advanceSweep(tx, sweep, last.id)
    else await endSweep(tx, sweep)
    return true
  })
}

function inputOf({ kind, reason }: Sweep, plan: Parameters<typeof moveTo>[0] | undefined): Input | null {
  if (kind === 'stop') return { kind: 'cancel', reason }
  if (kind === 'hold' || kind === 'resume') return { kind }
  return plan ? moveTo(plan) : null
}

function moveTo(plan: Extract<Input, { kind: 'move' }>['plan']): Input {
  return { kind: 'move', plan }
}
