import { isRetryable, type Pool } from '../../db/pool.ts'
import { cleanJson, type Json, StaleSlice } from '../../events/index.ts'
import { openTarget, type PostResult, post } from '../../experiences/index.ts'
import {
  journeyRetryMsMax,
  journeyTriesMax,
  webhookLeaseMs,
  webhookRetryMsMin,
  webhooksAtOnce,
} from '../../kernel/limits.ts'
import { applyInputs } from '../apply/apply.ts'
import type { ApplyServices } from '../apply/services.ts'
import { claimOutbox, countOutboxFailure, type OutboxRow, postponeOutbox, removeOutbox } from '../store/outbox-store.ts'
import { insertQuarantined } from '../store/quarantine-store.ts'
import { selectScopes } from '../store/scope-store.ts'
import { selectClock } from '../store/timer-store.ts'
import type { Input } from '../types.ts'

export interface SendOptions {
  pool: Pool
  services: ApplyServices
  sealingKey: Buffer
  allowPrivate: boolean
}

/**
 * Sends what is due and tells the journeys how it went; gives how many rows were taken. A row is nobody else's until its
 * timeout is over: a process that dies in between leaves it to another, so that it may arrive twice.
 */
export async function sendWebhooks(options: SendOptions): Promise<number> {
  const { pool } = options
  const { rows, now } = await pool.transaction(async ({ client }) => {
    const at = await selectClock(client)
    return { now: at, rows: await claimOutbox(client, { now: at, limit: webhooksAtOnce, leaseMs: webhookLeaseMs }) }
  })
  await Promise.all(rows.map((row) => sendOne(options, row, now)))
  return rows.length
}

async function sendOne(options: SendOptions, row: OutboxRow, now: number): Promise<void> {
  const { pool, services } = options
  try {
    const result = await tryOnce(options, row, now)
    if (!result.ok && result.again && row.attempts < row.attemptsMax) {
      const pause = Math.max(pauseMs(row.attempts), result.waitMs ?? 0)
      await pool.connected(async (client) => {
        await postponeOutbox(client, row, Math.ceil((await selectClock(client)) + pause))
      })
    } else {
      await tell(options, row, result)
    }
  } catch (error) {
    // Its lease ends by itself: then it is sent again, under the same key.
    if (error instanceof StaleSlice || isRetryable(error)) {
      services.log.warn({ err: error, ...placeOf(row) }, 'the result of a webhook is told later')
    } else {
      await setAside(options, row, error)
    }
  }
}

async function tryOnce(
  { pool, sealingKey, allowPrivate }: SendOptions,
  row: OutboxRow,
  at: number,
): Promise<PostResult> {
  // Another process took it up to its last try, and died before it could tell.
  if (row.attempts > row.attemptsMax) return { ok: false, again: false, why: 'no answer' }
  const target = await openTarget(pool, row, sealingKey)
  if (!target) return { ok: false, again: false, why: 'the endpoint was deleted' }
  const { body, timeoutMs } = row
  return post({ ...target, key: keyOf(row), body, timeoutMs, at, allowPrivate })
}

async function tell({ pool, services }: SendOptions, row: OutboxRow, result: PostResult): Promise<void> {
  if (!result.ok) services.log.warn({ ...placeOf(row), why: result.why }, 'a webhook failed')
  const answer = result.ok ? storable(result.body) : undefined
  const input: Input = {
    ...{ kind: 'webhookResult', key: keyOf(row), ok: result.ok },
    ...(answer === undefined ? {} : { body: answer }),
  }
  await pool.transaction(async (tx) => {
    if (!(await removeOutbox(tx.client, row))) return
    const [scope] = await selectScopes(tx, [row.scopeId])
    const now = await selectClock(tx.client)
    if (scope) await applyInputs(tx, scope, [{ journeyId: row.journeyId, input }], now, services)
  })
}

/** What can be kept of an answer. */
function storable(body: Json | undefined): Json | undefined {
  if (body === undefined) return undefined
  const cleaned = cleanJson({ body }, '')
  return cleaned.ok ? cleaned.value.body : undefined
}

async function setAside({ pool, services }: SendOptions, row: OutboxRow, error: unknown): Promise<void> {
  await pool.transaction(async (tx) => {
    const failures = await countOutboxFailure(tx.client, row)
    if (failures < journeyTriesMax) {
      services.log.warn({ err: error, ...placeOf(row) }, 'the result of a webhook cannot be told; it is sent again')
      return
    }
    services.log.error({ err: error, ...placeOf(row) }, 'the result of a webhook can never be told: it is set aside')
    if (!(await removeOutbox(tx.client, row))) return
    const { scopeId, journeyId, rev, index, endpointId, attempts } = row
    const body = JSON.stringify({ rev, index, endpoint_id: endpointId, attempts })
    const at = await selectClock(tx.client)
    await insertQuarantined(tx, { scopeId, source: 'outbox', journeyId, body, error: String(error), at })
  })
}

/** Longer after each try, never together with others that failed at once. */
function pauseMs(attempts: number): number {
  return Math.min(webhookRetryMsMin * 2 ** (attempts - 1), journeyRetryMsMax) * (0.75 + Math.random() / 2)
}

function keyOf({ journeyId, rev, index }: OutboxRow): string {
  return `${journeyId}:${rev}:${index}`
}

function placeOf({ scopeId, journeyId, rev, index }: OutboxRow) {
  return { scopeId, journeyId, rev, index }
}
