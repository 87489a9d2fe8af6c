import type { Sql } from '../db/pool.ts'
import { mailLeaseMs, mailsAtOnce, mailTriesMax, mailWaitMsMax } from '../kernel/limits.ts'
import { seal, unseal } from '../kernel/seal.ts'
import { deleteMail, insertMail, postponeMail, takeMails } from './mail-store.ts'

export interface Mail {
  to: string
  subject: string
  text: string
}

const context = 'outgoing-mail'

/** Puts a mail on its way, in the caller's transaction. It leaves after the commit, at least once. */
export function queueMail(sql: Sql, sealingKey: Buffer, mail: Mail): Promise<void> {
  return insertMail(sql, seal(sealingKey, context, JSON.stringify(mail)))
}

export interface Delivery {
  mail: Mail
  /** Thrown by the server, or undefined when it took the mail. */
  error: unknown
  /** No further try follows. */
  last: boolean
}

/** Sends what is due, outside any transaction, and tells how each went. */
export async function sendDueMails(
  sql: Sql,
  sealingKey: Buffer,
  send: (mail: Mail) => Promise<void>,
): Promise<Delivery[]> {
  const rows = await takeMails(sql, { max: mailsAtOnce, leaseMs: mailLeaseMs })
  return Promise.all(
    rows.map(async ({ id, sealed, tries }) => {
      const mail = JSON.parse(unseal(sealingKey, context, sealed) ?? '{}') as Mail // sealed by us, above
      const error = await send(mail).then(
        () => undefined,
        (reason: unknown) => reason ?? new Error('the mail was refused'),
      )
      const last = tries >= mailTriesMax
      if (error === undefined || last) await deleteMail(sql, id)
      else await postponeMail(sql, id, Math.min(1000 * 2 ** tries, mailWaitMsMax))
      return { mail, error, last }
    }),
  )
}
