import type { Tx } from '../../db/pool.ts'
import { insertSweeps, setHolds } from './sweep-store.ts'

interface Of {
  scopeId: number
  id: number
}

interface Command {
  reason: string
  /** Null: every app where it is, or was, published. */
  appIds: string[] | null
  /** Of the command: what begins later is none of its business. */
  at: Date
}

/** Ends what is open of an Experience, in the background. */
export function stopJourneys(tx: Tx, experience: Of, command: Command): Promise<void> {
  return insertSweeps(tx, experience, { kind: 'stop', ...command })
}

/** Arms that nobody has started go on with what is live now, where it has their section and they have its inputs. */
export function moveJourneys(tx: Tx, experience: Of, command: Command): Promise<void> {
  return insertSweeps(tx, experience, { kind: 'move', ...command })
}

/** What is open rests until the Experience is resumed. */
export async function holdJourneys(tx: Tx, experience: Of, command: Command): Promise<void> {
  await setHolds(tx, experience, { holds: true, ...command })
  await insertSweeps(tx, experience, { kind: 'hold', ...command })
}

export async function resumeHeldJourneys(tx: Tx, experience: Of, command: Command): Promise<void> {
  await setHolds(tx, experience, { holds: false, ...command })
  await insertSweeps(tx, experience, { kind: 'resume', ...command })
}
