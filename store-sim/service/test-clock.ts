import { type Connection, log, type Sim, type SimApp } from '../world.ts'
import { callService } from './call.ts'

/** Less than what verification forgives. */
const toleranceMs = 1_000

/** Keeps the connected project's test clock from lagging behind the app's time. That clock never goes back, nor do we. */
export async function followClock(sim: Sim, app: SimApp, at: number): Promise<void> {
  const { connection } = app
  if (connection === null || !connection.hasTestClock) return
  const aheadMs = at - sim.wall()
  if (aheadMs <= connection.clockAheadMs + toleranceMs) return
  const { ok, status, body } = await setTestClock(connection, aheadMs)
  // A conflict: it is further ahead than that already.
  if (ok || status === 409) connection.clockAheadMs = aheadMs
  else log(sim, { kind: 'control', what: 'PUT test_clock', status, detail: body })
}

export async function hasTestClock(to: Parameters<typeof setTestClock>[0]): Promise<boolean> {
  const { status } = await setTestClock(to, 0)
  return status !== 404 && status !== 405
}

function setTestClock(
  to: Pick<Connection, 'workspaceBaseUrl' | 'secretKey' | 'environmentHeader' | 'projectId'>,
  offsetMs: number,
) {
  return callService(to, 'PUT', `/projects/${to.projectId}/test_clock`, { offset_ms: offsetMs })
}
