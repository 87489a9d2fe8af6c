import { membershipsOf, raiseRevs } from '../../customers/index.ts'
import type { Sql, Tx } from '../../db/pool.ts'
import type { Scope } from '../../tenancy/index.ts'
import { insertAssignments, type NewAssignment, selectAssignments, type UnitKey } from './assignment-store.ts'
import { decide } from './decide.ts'
import { selectExperimentsNamed } from './experiment-store.ts'
import type { Assignment, Experiment } from './types.ts'

/** A question: which variant has this customer? By the experiment's public id and the record's id. */
export interface AssignmentQuestion {
  experimentId: string
  customerId: string
}

/** By customer and experiment. Null: none, the signed fallback runs. */
export type Assignments = Map<string, Record<string, Assignment | null>>

/**
 * Which variants customers have, given one where they have none yet and take part. To be committed before anybody is told.
 * A unit keeps the first that was stored, whoever stored it.
 */
export async function assign(
  tx: Tx,
  scope: Scope,
  questions: readonly AssignmentQuestion[],
  nowMs: number,
): Promise<Assignments> {
  const { assignments, fresh } = await peekAssignments(tx, scope, questions)
  if (fresh.length === 0) return assignments
  const inserted = await insertAssignments(tx, scope, fresh, nowMs)
  if (inserted.length < fresh.length) {
    const publicIds = new Map(fresh.map(({ experimentId, publicId }) => [experimentId, publicId]))
    for (const { experimentId, customerId, variantId, isHoldout } of await selectAssignments(tx, scope, fresh)) {
      put(assignments, customerId, publicIds.get(experimentId) ?? '', { variantId, isHoldout })
    }
  }
  const customers = [...new Set(inserted.map(({ customerId }) => customerId))]
  await raiseRevs(
    tx,
    customers.map((customerId) => ({ scopeId: scope.scopeId, customerId })),
  )
  return assignments
}

/** What `assign` would say, and which of that it would store. Writes nothing. */
export async function peekAssignments(
  sql: Sql,
  scope: Scope,
  questions: readonly AssignmentQuestion[],
): Promise<{ assignments: Assignments; fresh: (NewAssignment & { publicId: string })[] }> {
  const assignments: Assignments = new Map()
  for (const { customerId, experimentId } of questions) put(assignments, customerId, experimentId, null)
  if (questions.length === 0) return { assignments, fresh: [] }
  const named = [...new Set(questions.map(({ experimentId }) => experimentId))]
  const known = new Map((await selectExperimentsNamed(sql, scope, named)).map((one) => [one.publicId, one]))
  const asked = [...assignments].flatMap(([customerId, each]) =>
    Object.keys(each).flatMap((publicId) => {
      const experiment = known.get(publicId)
      return experiment ? [{ experiment, ...keyOf(experiment, customerId) }] : []
    }),
  )
  const sticky = asked.filter(({ experiment: { status } }) => status === 'running' || status === 'paused')
  const rows = sticky.length === 0 ? [] : await selectAssignments(sql, scope, sticky)
  const stored = new Map(rows.map((row) => [textOf(row), row]))
  const isMember = await audienceOf(
    sql,
    scope,
    sticky.filter((unit) => !stored.has(textOf(unit))),
  )
  const fresh = []
  for (const { experiment, customerId, ...key } of asked) {
    const row = stored.get(textOf({ customerId, ...key }))
    const decision = decide(experiment, {
      customerId,
      stored: row && { variantId: row.variantId, isHoldout: row.isHoldout },
      inAudience: isMember(customerId, experiment.audienceSegmentId),
    })
    if (decision === null) continue
    put(assignments, customerId, experiment.publicId, decision.assignment)
    const weightPeriod = experiment.weightPeriods.length - 1
    const { publicId } = experiment
    if (decision.fresh) fresh.push({ ...key, customerId, publicId, ...decision.assignment, weightPeriod })
  }
  return { assignments, fresh }
}

/** Asked only where an audience decides. */
async function audienceOf(
  sql: Sql,
  scope: Scope,
  units: { experiment: Experiment; customerId: string }[],
): Promise<(customerId: string, segmentId: string | null) => boolean> {
  const judged = units.filter(({ experiment }) => experiment.audienceSegmentId !== null)
  const customers = [...new Set(judged.map(({ customerId }) => customerId))]
  const memberships = customers.length === 0 ? new Map() : await membershipsOf(sql, scope, customers)
  const members = new Set(
    [...memberships].flatMap(([customerId, each]) =>
      each.map(({ segmentId }: { segmentId: string }) => `${segmentId} ${customerId}`),
    ),
  )
  return (customerId, segmentId) => segmentId === null || members.has(`${segmentId} ${customerId}`)
}

function keyOf({ id, phase }: Experiment, customerId: string): UnitKey {
  return { experimentId: id, phase, customerId }
}

function textOf({ experimentId, phase, customerId }: UnitKey): string {
  return `${experimentId} ${phase} ${customerId}`
}

function put(into: Assignments, customerId: string, experimentId: string, assignment: Assignment | null): void {
  const each = into.get(customerId) ?? {}
  each[experimentId] = assignment
  into.set(customerId, each)
}
