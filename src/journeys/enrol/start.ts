import { hash } from 'node:crypto'
import { resolveOrCreate } from '../../customers/index.ts'
import { coalesce } from '../../db/batch.ts'
import { isRetryable, type Pool, type Tx, unavailable } from '../../db/pool.ts'
import { type JsonObject, StaleSlice } from '../../events/index.ts'
import type { DeclaredField } from '../../experiences/index.ts'
import { must } from '../../kernel/assert.ts'
import { canonicalJson } from '../../kernel/canonical-json.ts'
import type { Clock } from '../../kernel/clock.ts'
import { type Issue, Refusal, refuse } from '../../kernel/errors.ts'
import { randomText } from '../../kernel/ids.ts'
import { startsAtOnce, startsWaitingMax, startTriesMax, startWaitMsMax } from '../../kernel/limits.ts'
import type { Scope } from '../../tenancy/index.ts'
import { pinnedPlans } from '../apply/pinned-plans.ts'
import type { ApplyServices } from '../apply/services.ts'
import { fitsField } from '../engine/fields.ts'
import type { PinnedPlan } from '../plan.ts'
import { type PointerState, selectStartable } from '../plans-store.ts'
import { keepStarts } from '../store/starts-store.ts'
import { enrol } from './enrol.ts'
import type { Candidate, Start } from './types.ts'

export interface StartOptions {
  pool: Pool
  clock: Clock
  tombstoneKey: Buffer
  services: ApplyServices
}

export interface StartCommand {
  scope: Scope
  /** Id or key. */
  experience: string
  appId: string
  distinctId: string
  /** Of the request; undefined: a start of its own. */
  key: string | undefined
  /** Or why it can't be one: told after what comes before it. */
  context: JsonObject | Refusal
}

type Started = Start & { experienceId: string }

export type StartExperience = (command: StartCommand) => Promise<Started>

/** What is live where it is to start. */
interface Startable {
  plan: PinnedPlan
  state: PointerState
}

interface Item extends StartCommand, Startable {}

/**
 * Starts an Experience for a customer, once for each key. Requests that arrive while others are decided share a transaction; the
 * key's row decides between processes. Throws `experience_not_startable`, `customer_deleted`, and 400 for a context that lacks
 * what the Experience needs.
 */
export function createStart(options: StartOptions): StartExperience {
  const { clock } = options
  const decide = coalesce<StartCommand, Started | Refusal>({
    run: (items) => startAll(options, items),
    lanes: 2,
    laneKey: ({ scope, distinctId }) => `${scope.scopeId} ${distinctId}`,
    itemsMax: startsAtOnce,
    waitingMax: startsWaitingMax,
    waitMsMax: startWaitMsMax,
    now: () => clock.now(),
    splitOn: (error) => !isRetryable(error),
  })
  return async (command) => {
    try {
      const answer = await decide(command)
      if (answer instanceof Refusal) throw answer
      return answer
    } catch (error) {
      throw unavailable(error, 'service_unavailable')
    }
  }
}

/** What may pass by itself, such as two that wait for each other, is tried again. */
async function startAll(options: StartOptions, items: StartCommand[]): Promise<(Started | Refusal)[]> {
  for (let tries = 1; ; tries++) {
    try {
      return await attempt(options, items)
    } catch (error) {
      if (!(isRetryable(error) || error instanceof StaleSlice) || tries >= startTriesMax) throw error
    }
  }
}

/** Items of several scopes are transactions of their own. */
async function attempt(options: StartOptions, items: StartCommand[]): Promise<(Started | Refusal)[]> {
  const answers = new Map<StartCommand, Started | Refusal>()
  for (const own of Map.groupBy(items, ({ scope }) => scope.scopeId).values()) {
    const { scope } = must(own[0], 'a group has one')
    const decided = await options.pool.transaction((tx) => startIn(tx, scope, own, options))
    for (const [item, answer] of decided) answers.set(item, answer)
  }
  return items.map((item) => must(answers.get(item), 'each is answered'))
}

async function startIn(
  tx: Tx,
  scope: Scope,
  commands: readonly StartCommand[],
  { clock, tombstoneKey, services }: StartOptions,
): Promise<Map<StartCommand, Started | Refusal>> {
  await keepStarts(tx, scope)
  const now = clock.now()
  const answers = new Map<StartCommand, Started | Refusal>()
  const items: { command: StartCommand; item: Item }[] = []
  // Here, and not before its turn: until then it may have been paused, taken back, or followed by another version.
  const startable = await startables(tx, scope, commands)
  for (const command of commands) {
    const found = startable.get(placeOf(command))
    if (found) items.push({ command, item: { ...command, ...found } })
    else answers.set(command, refuse('experience_not_startable'))
  }
  const candidates: { command: StartCommand; candidate: Candidate }[] = []
  const known = new Map<string, string | Refusal>()
  // In one order everywhere: who makes a customer is waited for.
  for (const distinctId of [...new Set(items.map(({ item }) => item.distinctId))].toSorted()) {
    known.set(distinctId, await resolve(tx, scope, distinctId, { tombstoneKey, now }))
  }
  for (const { command, item } of items) {
    const customer = must(known.get(item.distinctId), 'each was asked for')
    const wrong = customer instanceof Refusal ? customer : refusalOf(item)
    if (wrong) answers.set(command, wrong)
    else candidates.push({ command, candidate: candidateOf(item, customer as string, now) }) // no refusal, as seen above
  }
  const starts = await enrol(
    tx,
    scope,
    candidates.map(({ candidate }) => candidate),
    now,
    services,
  )
  for (const [i, { command, candidate }] of candidates.entries()) {
    const { experiencePublicId: experienceId } = candidate.plan
    answers.set(command, { ...must(starts[i], 'each is decided'), experienceId })
  }
  return answers
}

/** What may be started by a request, by experience and app; each is looked for once. */
async function startables(tx: Tx, scope: Scope, commands: readonly StartCommand[]): Promise<Map<string, Startable>> {
  const found = new Map<string, Startable>()
  for (const [place, [command]] of Map.groupBy(commands, placeOf)) {
    const pointer = command && (await selectStartable(tx, scope, command))
    const plan = pointer && (await pinnedPlans(tx, scope, [pointer])).get(pointer.buildId)
    if (pointer && plan?.policy.entry.trigger.type === 'api') found.set(place, { plan, state: pointer.state })
  }
  return found
}

function placeOf({ experience, appId }: StartCommand): string {
  return JSON.stringify([experience, appId])
}

async function resolve(
  tx: Tx,
  scope: Scope,
  distinctId: string,
  options: { tombstoneKey: Buffer; now: number },
): Promise<string | Refusal> {
  try {
    return (await resolveOrCreate(tx, scope, distinctId, options)).customer.id
  } catch (error) {
    if (error instanceof Refusal) return error
    throw error
  }
}

function candidateOf({ plan, state, appId, key, context: given }: Item, customerId: string, now: number): Candidate {
  const context = given instanceof Refusal ? {} : given
  const declared = Object.keys(plan.fields.event ?? {}).filter((name) => Object.hasOwn(context, name))
  return {
    ...{ customerId, appId, plan, state, by: 'api', at: now },
    occurrence: `api:${key ?? randomText(32)}`,
    context: { event: Object.fromEntries(declared.map((name) => [name, context[name] ?? null])), responses: {} },
    contextHash: hash('sha256', canonicalJson(context), 'buffer'),
  }
}

/** What the Experience reads has to be there, and of its type. */
function refusalOf({ plan, context }: Item): Refusal | null {
  if (context instanceof Refusal) return context
  const issues: Issue[] = []
  for (const [key, field] of Object.entries(plan.fields.event ?? {})) {
    const path = `/context/${key.replaceAll('~', '~0').replaceAll('/', '~1')}`
    const value = Object.hasOwn(context, key) ? context[key] : undefined
    if (value === undefined) {
      if (field.required) issues.push({ path, message: `${key} is required` })
    } else if (!fitsField(value, { key, ...field } as DeclaredField)) {
      issues.push({ path, message: `${key} is not what the Experience declares: ${field.type}` })
    }
  }
  return issues.length === 0 ? null : refuse('invalid_request', { param: 'context', issues })
}
