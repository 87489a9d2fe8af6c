import { connect as connectPlain } from 'node:net'
import { connect as connectSecure } from 'node:tls'
import { mailGreetingMsMax } from '../../kernel/limits.ts'
import { type Finding, ok, problem } from './finding.ts'

/** Whether the mail server of SMTP_URL greets. Nothing is sent and nobody is signed in. */
export async function lookAtMail(smtpUrl: string | undefined): Promise<Finding> {
  if (smtpUrl === undefined) return ok('mail', 'SMTP_URL is not set: mails go to the log')
  const { hostname, port, protocol } = new URL(smtpUrl)
  const secure = protocol === 'smtps:'
  const at = { host: hostname.replace(/^\[|\]$/g, ''), port: Number(port || (secure ? 465 : 587)) }
  const where = `${at.host}:${at.port}`
  try {
    const greeting = await greetingOf(at, secure)
    if (greeting.startsWith('220')) return ok('mail', `${where} greets`)
    return problem(
      'mail',
      `${where} says ${JSON.stringify(greeting.slice(0, 100))}`,
      'SMTP_URL must name a mail server that accepts mail now',
    )
  } catch (error) {
    const { message } = error as Error // of the socket
    return problem(
      'mail',
      `${where} does not answer: ${message}`,
      'check SMTP_URL, the mail server and the firewall between',
    )
  }
}

function greetingOf(at: { host: string; port: number }, secure: boolean): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = secure ? connectSecure({ ...at, servername: at.host }) : connectPlain(at)
    let said = ''
    const end = (done: () => void) => {
      socket.destroy()
      done()
    }
    socket.setTimeout(mailGreetingMsMax, () => end(() => reject(new Error('no greeting in time'))))
    socket.on('error', (error) => end(() => reject(error)))
    socket.on('end', () => end(() => resolve(said.trim())))
    socket.on('data', (chunk) => {
      said += chunk.toString('latin1')
      if (said.includes('\n') || said.length > 1000) end(() => resolve(said.trim()))
    })
  })
}
