import { nextOf } from '../appstore/periods.ts'
import { attempt, nextDelivery } from '../deliver.ts'
import { nextOfOneTime, nextOfSubscription } from '../playstore/periods.ts'
import { refuse } from '../refusal.ts'
import { followClock } from '../service/test-clock.ts'
import type { Sim, SimApp } from '../world.ts'
import { goalOf, moveTo, nowOf } from './clock.ts'

/** More than this in one go is a clock moved too far, or a period of no length. */
const stepsMax = 100_000

interface Step {
  app: SimApp
  at: number
  run: () => void | Promise<void>
}

/** Runs all that is due in these apps by their own time. */
export async function runDue(sim: Sim, apps = sim.world.apps): Promise<void> {
  await advanceTo(sim, apps, (app) => goalOf(app.clock, sim.wall()))
}

/** Moves these clocks ahead; everything due on the way happens in order, each at its own instant. */
export async function advanceTo(sim: Sim, apps: SimApp[], until: (app: SimApp) => number): Promise<void> {
  const ends = new Map(apps.map((app) => [app, until(app)]))
  for (let steps = 0; ; steps++) {
    const due = apps.flatMap((app) => dueIn(sim, app)).filter(({ app, at }) => at <= (ends.get(app) ?? 0))
    const next = due.reduce<Step | undefined>(
      (first, step) => (first === undefined || step.at < first.at ? step : first),
      undefined,
    )
    if (next === undefined) break
    if (steps === stepsMax) throw refuse('too_much_due', `more than ${stepsMax} things are due by then`, 409)
    await move(sim, next.app, next.at)
    await next.run()
    sim.changed()
  }
  for (const [app, end] of ends) await move(sim, app, end)
}

/** The service's clock first: nothing it sees comes from its future. */
async function move(sim: Sim, app: SimApp, at: number): Promise<void> {
  await followClock(sim, app, at)
  if (at <= nowOf(app.clock, sim.wall())) return
  app.clock = moveTo(app.clock, at, sim.wall())
  sim.changed()
}

function dueIn(sim: Sim, app: SimApp): Step[] {
  const delivery = nextDelivery(app)
  const deliveryAt = delivery?.nextAt ?? null
  const purchases =
    app.store === 'appstore'
      ? app.lineages.map((lineage) => nextOf(sim, app, lineage))
      : [
          ...app.subscriptions.map((one) => nextOfSubscription(sim, app, one)),
          ...app.oneTimes.map((one) => nextOfOneTime(sim, app, one)),
        ]
  return [
    ...(delivery === undefined || deliveryAt === null
      ? []
      : [{ app, at: deliveryAt, run: () => attempt(sim, app, delivery, deliveryAt) }]),
    ...purchases.flatMap((due) => (due === null ? [] : [{ app, ...due }])),
  ]
}
