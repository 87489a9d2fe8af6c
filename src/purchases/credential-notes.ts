import type { Sql } from '../db/pool.ts'
import { noteCredential } from './config-store.ts'
import type { NoteUse } from './store-calls.ts'

export interface CredentialNotes extends AsyncDisposable {
  note: NoteUse
}

/** Keeps how the use of each credential went beside its record. Nobody waits for it, but whoever stops. */
export function openCredentialNotes({
  sql,
  log,
}: {
  sql: Sql
  log: { warn: (detail: object, words: string) => void }
}): CredentialNotes {
  const writing = new Set<Promise<void>>()
  return {
    note({ scope, appId, store }, error) {
      const write = noteCredential(sql, scope, appId, { kind: store, error })
        .catch((cause: unknown) =>
          log.warn({ err: cause, app_id: appId }, 'the use of a credential could not be noted'),
        )
        .finally(() => writing.delete(write))
      writing.add(write)
    },
    async [Symbol.asyncDispose]() {
      await Promise.all(writing)
    },
  }
}
