import type { Transporter } from 'nodemailer'
import type { Logger } from 'pino'
import type { Pool } from './db/pool.ts'
import { mailSendMsMax, mailSweepMs } from './kernel/limits.ts'
import { type Mail, sendDueMails } from './tenancy/index.ts'

export interface MailOptions {
  pool: Pool
  sealingKey: Buffer
  /** Undefined: mails are written to the log. */
  smtpUrl: string | undefined
  publicUrl: string
  log: Logger
}

/** Sends the mails that wait in the database, from any number of processes: each at least once, most of them once. */
export function startMail({ pool, sealingKey, smtpUrl, publicUrl, log }: MailOptions): AsyncDisposable {
  const server = smtpUrl === undefined ? undefined : openServer(smtpUrl, publicUrl)
  const send = async (mail: Mail): Promise<void> => {
    if (server) await server.send(mail)
    else log.info({ mail }, `mail to ${mail.to}: ${mail.subject}`)
  }
  let sweeping: Promise<void> | undefined
  const timer = setInterval(() => {
    sweeping ??= sweep()
      .catch((error: unknown) => log.warn({ err: error }, 'waiting mails could not be read'))
      .finally(() => {
        sweeping = undefined
      })
  }, mailSweepMs)
  timer.unref()

  async function sweep(): Promise<void> {
    for (const { mail, error, last } of await sendDueMails(pool, sealingKey, send)) {
      if (error === undefined) continue
      if (last) log.error({ err: error, to: mail.to }, 'a mail could not be sent and was given up')
      else log.warn({ err: error, to: mail.to }, 'a mail could not be sent; it is tried again')
    }
  }

  return {
    async [Symbol.asyncDispose]() {
      clearInterval(timer)
      await sweeping
      server?.close()
    },
  }
}

/** Mails come from `?from=` of the address, or from its user where that is an address, or from `turnpike@` our host. */
export function senderOf(smtpUrl: string, publicUrl: string): string {
  const { searchParams, username } = new URL(smtpUrl)
  const user = decodeURIComponent(username)
  return searchParams.get('from') ?? (user.includes('@') ? user : `turnpike@${new URL(publicUrl).hostname}`)
}

/** The library is loaded for the first mail. */
function openServer(smtpUrl: string, publicUrl: string) {
  const from = senderOf(smtpUrl, publicUrl)
  const address = new URL(smtpUrl)
  address.searchParams.delete('from')
  let transport: Promise<Transporter> | undefined
  const connect = async () => {
    const { createTransport } = await import('nodemailer')
    const timeouts = { connectionTimeout: mailSendMsMax, greetingTimeout: mailSendMsMax, socketTimeout: mailSendMsMax }
    return createTransport({ url: address.href, ...timeouts })
  }
  return {
    async send({ to, subject, text }: Mail): Promise<void> {
      transport ??= connect()
      await (await transport).sendMail({ from, to, subject, text })
    },
    close(): void {
      void transport?.then((open) => open.close())
    },
  }
}
