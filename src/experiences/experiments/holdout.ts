import type { Tx } from '../../db/pool.ts'
import type { Scope } from '../../tenancy/index.ts'
import { type AssignmentQuestion, assign } from './assign.ts'
import { recordExposures } from './expose.ts'

/**
 * Which of them a holdout keeps out, one answer for each question in their order. Who takes part is counted either way: what
 * the others are shown is compared with these. Who doesn't take part is let in.
 */
export async function holdOut(
  tx: Tx,
  scope: Scope,
  questions: readonly AssignmentQuestion[],
  nowMs: number,
): Promise<boolean[]> {
  const assignments = await assign(tx, scope, questions, nowMs)
  const given = questions.map(({ customerId, experimentId }) => assignments.get(customerId)?.[experimentId] ?? null)
  const seen = questions.flatMap(({ experimentId: experiment, customerId }, i) => {
    const assignment = given[i]
    return assignment ? [{ experiment, customerId, ...assignment, fallback: false, atMs: nowMs, eventUuid: null }] : []
  })
  await recordExposures(tx, scope, seen)
  return given.map((assignment) => assignment?.isHoldout === true)
}
