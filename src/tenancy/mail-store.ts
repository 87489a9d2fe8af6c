import type { Sql } from '../db/pool.ts'

export interface MailRow {
  id: bigint
  sealed: string
  tries: number
}

export async function insertMail(sql: Sql, sealed: string): Promise<void> {
  await sql.query(`insert into outgoing_mail (sealed) values ($1)`, [sealed])
}

/** Takes due mails for `leaseMs`: whoever takes them and dies leaves them to the next. */
export async function takeMails(sql: Sql, { max, leaseMs }: { max: number; leaseMs: number }): Promise<MailRow[]> {
  return sql.query<MailRow>(
    `update outgoing_mail
     set tries = tries + 1, next_try_at = now() + $2 * interval '1 millisecond'
     where id in (
       select id
       from outgoing_mail
       where next_try_at <= now()
       order by next_try_at
       limit $1
       for update skip locked)
     returning id, sealed, tries`,
    [max, leaseMs],
  )
}

export async function deleteMail(sql: Sql, id: bigint): Promise<void> {
  await sql.query(`delete from outgoing_mail where id = $1`, [id])
}

export async function postponeMail(sql: Sql, id: bigint, waitMs: number): Promise<void> {
  await sql.query(`update outgoing_mail set next_try_at = now() + $2 * interval '1 millisecond' where id = $1`, [
    id,
    waitMs,
  ])
}
