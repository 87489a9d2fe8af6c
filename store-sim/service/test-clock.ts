import { log, type Sim, type SimApp } from '../world.ts'
import { callService } from './call.ts'

/** Less than what verification forgives. */
const toleranceMs = 1_000

/** Keeps the connected project's test clock from lagging behind the app's time. That clock never goes back, nor do we. */
export async function followClock(sim: Sim, app: SimApp, at: number): Promise<void> {
  const { connection } = app
  if (connection === null) return
  const aheadMs = at - sim.wall()
  if (aheadMs <= connection.clockAheadMs + toleranceMs) return
  const answer = await callService(connection, 'PUT', `/projects/${connection.projectId}/test_clock`, {
    offset_ms: aheadMs,
  })
  if (answer.ok) connection.clockAheadMs = aheadMs
  else log(sim, { kind: 'control', what: 'PUT test_clock', status: answer.status, detail: answer.body })
}
