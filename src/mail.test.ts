import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import test, { beforeEach } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import pino from 'pino'
import { SMTPServer } from 'smtp-server'
import { testDatabase } from '../test/harness/database.ts'
import { mailTriesMax } from './kernel/limits.ts'
import { senderOf, startMail } from './mail.ts'
import { queueMail, sendDueMails } from './tenancy/index.ts'

const sealingKey = Buffer.alloc(32, 1)
const publicUrl = 'https://turnpike.example:4000'
const mail = { to: 'ada@example.com', subject: 'Grüße', text: 'Zeile eins\n.\nZeile drei\n' }

interface Received {
  from: string
  to: string[]
  source: string
}

/** A mail server as strict as any: it answers what `judge` says, and keeps what it took. */
async function startServer(judge: (n: number) => Error | null = () => null) {
  const received: Received[] = []
  let asked = 0
  const server = new SMTPServer({
    authMethods: ['PLAIN'],
    onAuth: ({ username, password }, _, done) =>
      done(username === 'post@example.com' && password === 'p:w' ? null : new Error('no'), { user: username }),
    hideSTARTTLS: true,
    allowInsecureAuth: true,
    onData(stream, { envelope }, done) {
      const chunks: Buffer[] = []
      stream.on('data', (chunk: Buffer) => chunks.push(chunk))
      stream.on('end', () => {
        const refusal = judge(asked++)
        const from = envelope.mailFrom === false ? '' : envelope.mailFrom.address
        const to = envelope.rcptTo.map(({ address }) => address)
        if (!refusal) received.push({ from, to, source: Buffer.concat(chunks).toString() })
        done(refusal)
      })
    },
  })
  const listening = server.listen(0, '127.0.0.1')
  await once(listening, 'listening')
  const { port } = listening.address() as AddressInfo // a TCP address after listen
  return {
    received,
    asked: () => asked,
    url: `smtp://post%40example.com:p%3Aw@127.0.0.1:${port}`,
    [Symbol.asyncDispose]: () => new Promise<void>((resolve) => server.close(resolve)),
  }
}

async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await holds())) await sleep(10)
}

const lines: string[] = []
const log = pino({ level: 'info' }, { write: (line: string) => lines.push(line) })
beforeEach(() => lines.splice(0))

test('a mail goes out once, whole, from the user of the address; then nothing of it is kept', async () => {
  await using database = await testDatabase()
  const { pool } = database
  await using server = await startServer()
  const options = { pool, sealingKey, smtpUrl: server.url, publicUrl, log }
  await using _one = startMail(options)
  await using _two = startMail(options)
  await queueMail(pool, sealingKey, mail)
  await until(() => server.received.length > 0)
  await until(async () => (await pool.query('select 1 from outgoing_mail')).length === 0)
  assert.equal(server.asked(), 1)
  const { from, to, source } = server.received[0] ?? assert.fail()
  assert.deepEqual([from, to], ['post@example.com', [mail.to]])
  assert.match(source, /^Subject: =\?UTF-8\?/m)
  assert.match(source, /Zeile eins\r\n\.\.?\r\nZeile drei/)
  assert.deepEqual(lines, [])
})

test('what is not committed is not sent, and what waits is sealed', async () => {
  await using database = await testDatabase()
  const { pool } = database
  const rolledBack = pool.transaction(async (tx) => {
    await queueMail(tx, sealingKey, mail)
    throw new Error('no')
  })
  await assert.rejects(rolledBack)
  assert.deepEqual(await pool.query('select 1 from outgoing_mail'), [])
  await queueMail(pool, sealingKey, mail)
  assert.ok(!JSON.stringify(await pool.query('select sealed from outgoing_mail')).includes('Zeile'))
})

test('a server that refuses is asked again', async () => {
  await using database = await testDatabase()
  const { pool } = database
  await using server = await startServer((n) => (n < 1 ? new Error('greylisted, come again') : null))
  await using _mails = startMail({ pool, sealingKey, smtpUrl: server.url, publicUrl, log })
  await queueMail(pool, sealingKey, mail)
  await until(() => lines.some((line) => line.includes('it is tried again')))
  assert.ok(!lines.join('').includes('Zeile'))
  await pool.query('update outgoing_mail set next_try_at = now()')
  await until(() => server.received.length === 1)
})

test('each try is later than the one before, and the last one is told', async () => {
  await using database = await testDatabase()
  const { pool } = database
  await queueMail(pool, sealingKey, mail)
  const waits: number[] = []
  for (let tries = 1; tries <= mailTriesMax; tries++) {
    await pool.query(`update outgoing_mail set next_try_at = now()`)
    const [delivery] = await sendDueMails(pool, sealingKey, () => Promise.reject(new Error('never')))
    assert.equal(delivery?.last, tries === mailTriesMax)
    const [row] = await pool.query<{ wait: number }>(
      'select extract(epoch from next_try_at - now())::float8 as wait from outgoing_mail',
    )
    waits.push(Math.round(row?.wait ?? 0))
  }
  assert.deepEqual([waits[0], waits[3], waits[20]], [2, 16, 3600])
  assert.deepEqual(await pool.query('select 1 from outgoing_mail'), [])
})

test('a sender that dies leaves its mails to the next one', async () => {
  await using database = await testDatabase()
  const { pool } = database
  await queueMail(pool, sealingKey, mail)
  const taken = Promise.withResolvers<void>()
  void sendDueMails(pool, sealingKey, () => {
    taken.resolve()
    return new Promise(() => {})
  })
  await taken.promise
  assert.deepEqual(await sendDueMails(pool, sealingKey, async () => {}), [])
  await pool.query(`update outgoing_mail set next_try_at = now()`)
  assert.deepEqual(await sendDueMails(pool, sealingKey, async () => {}), [{ mail, error: undefined, last: false }])
})

test('without a mail server, mails are written to the log', async () => {
  await using database = await testDatabase()
  await using _mails = startMail({ pool: database.pool, sealingKey, smtpUrl: undefined, publicUrl, log })
  await queueMail(database.pool, sealingKey, mail)
  await until(() => lines.length > 0)
  assert.deepEqual(JSON.parse(lines[0] ?? '').mail, mail)
})

test('the sender is named in the address, or is its user, or this service', () => {
  const senders = [
    'smtp://host?from=Turnpike%20%3Cno-reply%40example.com%3E',
    'smtp://post%40example.com:p@host',
    'smtps://user:p@host',
  ]
  assert.deepEqual(
    senders.map((address) => senderOf(address, publicUrl)),
    ['Turnpike <no-reply@example.com>', 'post@example.com', 'turnpike@turnpike.example'],
  )
})
