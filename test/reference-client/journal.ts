import { isObject } from '../conformance/check.ts'
import type { Reply, Transport } from './outbox.ts'

/** A use of units that is not settled yet: kept, under its operation id, until the server has decided. */
export interface Command {
  operationId: string
  customerId: string
  featureId: string
  quantity: number
}

export type Settled = { kind: 'decided'; accepted: boolean } | { kind: 'dropped'; status: number } | { kind: 'kept' }

const dropping = new Set([400, 401, 403, 404, 410, 413, 422])

/** Sends a command once and says what becomes of it. */
export async function settle(command: Command, apiKey: string, transport: Transport): Promise<Settled> {
  const body = JSON.stringify({ apiKey, ...command })
  const reply = await transport('/feature/consume', body, { 'content-type': 'application/json' }).catch(() => undefined)
  return reply === undefined ? { kind: 'kept' } : judge(command, reply)
}

export function judge(command: Command, { status, bytes }: Reply): Settled {
  const body: unknown = JSON.parse(Buffer.from(bytes).toString() || 'null')
  if (status < 300) {
    // An answer to another question decides nothing.
    const keys = ['operationId', 'customerId', 'featureId', 'quantity'] as const
    const echoed =
      isObject(body) && keys.every((key) => body[key] === command[key]) && typeof body.accepted === 'boolean'
    return echoed ? { kind: 'decided', accepted: body.accepted === true } : { kind: 'kept' }
  }
  const conflict = status === 409 && isObject(body) && body.code === 'operation_conflict'
  return dropping.has(status) || conflict ? { kind: 'dropped', status } : { kind: 'kept' }
}
