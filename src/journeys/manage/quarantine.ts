import type { Tx } from '../../db/pool.ts'
import { must } from '../../kernel/assert.ts'
import { refuse } from '../../kernel/errors.ts'
import type { Scope } from '../../tenancy/index.ts'
import type { InboxBody } from '../intake/inbox.ts'
import { insertInbox } from '../intake/inbox-store.ts'
import { wakeEngine } from '../store/timer-store.ts'
import { deleteQuarantined, type QuarantineRecord, restoreTimer } from './quarantine-store.ts'

/** As `setAside` of timers and `quarantine` of the inbox leave them. */
interface TimerBody {
  kind: string
  rev: number
  due_at_ms: number
}
interface InputBody {
  pos: string
  n: number
  received_at_ms: number
  body: string
}

/**
 * Tells a journey again what was set aside: an input after those that came behind it meanwhile, a timer at once; what its journey
 * has left behind changes nothing. Throws `not_found`, and `conflict` for the result of a webhook, which is not kept.
 */
export async function releaseQuarantined(tx: Tx, scopes: readonly Scope[], id: bigint): Promise<QuarantineRecord> {
  const row = await dropQuarantined(tx, scopes, id)
  const scope = must(
    scopes.find(({ scopeId }) => scopeId === row.scopeId),
    'it was looked for in these',
  )
  switch (row.source) {
    case 'inbox': {
      const { pos, n, received_at_ms: receivedAt, body } = JSON.parse(row.body) as InputBody // see above
      const customerId = must(row.customerId, 'an input is of a customer')
      const input = { customerId, pos: BigInt(pos), n, receivedAt, body: JSON.parse(body) as InboxBody } // written by insertInbox
      await insertInbox(tx, scope, [input])
      break
    }
    case 'timer': {
      const { kind, rev, due_at_ms: dueAt } = JSON.parse(row.body) as TimerBody // see above
      await restoreTimer(tx, scope, { journeyId: must(row.journeyId, 'a timer is of a journey'), kind, rev, dueAt })
      await wakeEngine(tx.client)
      break
    }
    case 'outbox':
      throw refuse('conflict', {
        message: 'The webhook was sent; its result is not kept. Cancel the journey, or leave it to its lifetime.',
      })
  }
  return row
}

/** For ever. Throws `not_found`. */
export async function dropQuarantined(tx: Tx, scopes: readonly Scope[], id: bigint): Promise<QuarantineRecord> {
  const row = await deleteQuarantined(tx, scopes, id)
  if (!row) throw refuse('not_found')
  return row
}
