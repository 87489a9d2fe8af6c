import type pg from 'pg'
import type { RawRow } from '../../db/raw.ts'
import { must } from '../../kernel/assert.ts'
import { Refusal, refuse } from '../../kernel/errors.ts'
import { usageWithoutCustomer } from '../engine/usage.ts'
import type { UsageDecision } from '../types.ts'
import { type ConsumeAnswer, type ConsumeCommand, featureTypes, modeNumber, type Slot } from './slot.ts'
import { selectSurvivor } from './usage-store.ts'

/** Answers every command that needs no decision, in the order of checks: deleted, saved, no such Feature, no record. */
export async function answerKnown(client: pg.PoolClient, slots: Slot[], savedRows: RawRow[]): Promise<void> {
  for (const slot of slots) {
    if (slot.holder.deleted) slot.answer = refuse('customer_deleted')
  }
  for (const row of savedRows) {
    const slot = must(slots[Number(row[0]) - 1], 'rows name commands')
    slot.answer ??= await savedAnswer(client, slot, row)
  }
  for (const slot of slots) {
    const { feature } = slot.inquiry
    if (!feature) slot.answer ??= refuse('feature_not_found', { details: { featureId: slot.command.featureKey } })
    else if (slot.holder.customerId === undefined && slot.command.purchaseKey === undefined) {
      const { type } = feature
      slot.answer ??= { ...usageWithoutCustomer(type), type, occurredAt: null, replay: false }
    }
  }
}

/** The saved decision when the command is the same one, whatever has happened to the catalogue since. */
async function savedAnswer(
  client: pg.PoolClient,
  { command, holder }: Slot,
  row: RawRow,
): Promise<ConsumeAnswer | Refusal> {
  const same =
    row[13] === (command.purchaseKey ?? null) &&
    row[2] === command.featureKey &&
    row[3] === command.entityId &&
    row[4] === String(modeNumber[command.mode]) &&
    row[5] === String(command.quantity)
  if (!same || !(await isCustomer(client, command, holder.customerId, row[1] ?? ''))) return conflict(command)
  return {
    accepted: row[6] === 't',
    code: row[7] as UsageDecision['code'], // written from one
    type: must(featureTypes[Number(row[8])], 'a stored type'),
    balance: row[9] === null ? null : Number(row[9]),
    unlimited: row[10] === 't',
    active: row[11] === 't',
    occurredAt: Number(row[12]),
    replay: true,
  }
}

/** Both sides as the record they are today, so that a retry after an identify still replays. */
async function isCustomer(
  client: pg.PoolClient,
  { scope }: ConsumeCommand,
  customerId: string | undefined,
  savedId: string,
): Promise<boolean> {
  if (customerId === undefined || customerId === savedId) return customerId === savedId
  return (await selectSurvivor(client, scope.scopeId, savedId)) === customerId
}

/** A further command with the same operation id in the same batch: the same input gets the same answer. */
export function repeated(slot: Slot, of: Slot): ConsumeAnswer | Refusal {
  const a = slot.command
  const b = of.command
  const same =
    a.featureKey === b.featureKey &&
    a.entityId === b.entityId &&
    a.mode === b.mode &&
    a.quantity === b.quantity &&
    a.purchaseKey === b.purchaseKey &&
    slot.holder.customerId === of.holder.customerId
  const answer = must(of.answer, 'the first one was decided')
  // A refusal is not saved: nothing stands in the way of the other one, which has to ask again.
  if (!same) return answer instanceof Refusal ? refuse('billing_unavailable', { retryAfterS: 1 }) : conflict(a)
  return 'replay' in answer ? { ...answer, replay: true } : answer
}

function conflict({ operationId }: ConsumeCommand): Refusal {
  return refuse('operation_conflict', { details: { operationId } })
}
