import type { Tx } from './pool.ts'

/** What is locked: a name, within the scope. */
export interface NamedLock {
  scopeId: number
  name: string
}

/** Until the end of `tx` nobody else takes or keeps what is so named. Who holds it is waited for. */
export async function takeNamed(tx: Tx, { scopeId, name }: NamedLock): Promise<void> {
  await tx.query('select pg_advisory_xact_lock(hashtextextended($1, $2))', [name, scopeId])
}

/** Until the end of `tx` nobody takes what is so named; others may keep it too. Who took it is waited for. */
export async function keepNamed(tx: Tx, { scopeId, name }: NamedLock): Promise<void> {
  await tx.query('select pg_advisory_xact_lock_shared(hashtextextended($1, $2))', [name, scopeId])
}
