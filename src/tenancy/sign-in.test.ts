import assert from 'node:assert/strict'
import test from 'node:test'
import pino from 'pino'
import { testDatabase } from '../../test/harness/database.ts'
import { isRetryable, Pool } from '../db/pool.ts'
import { resetsWaitingMax } from '../kernel/limits.ts'
import { openSignIn, signInRefusal } from './sign-in.ts'

const options = { sealingKey: Buffer.alloc(32, 1), publicUrl: 'http://localhost', log: pino({ level: 'silent' }) }

test('so many resets are prepared after their answers; one more is told to come again', async () => {
  await using database = await testDatabase()
  await using signIn = openSignIn({ pool: database.pool, ...options })
  for (let n = 0; n < resetsWaitingMax; n++) await signIn.requestReset(`person-${n}@example.com`)
  await assert.rejects(signIn.requestReset('more@example.com'), { code: 'service_unavailable' })
})

test('whoever closes it waits for what was promised', async () => {
  await using database = await testDatabase()
  const { pool } = database
  const person = { email: 'ada@example.com', password: 'correct horse', name: 'Ada' }
  {
    await using signIn = openSignIn({ pool, ...options })
    await signIn.signUp(person)
    await signIn.requestReset(person.email)
  }
  assert.equal((await pool.query('select 1 from user_verification')).length, 1)
  assert.equal((await pool.query('select 1 from outgoing_mail')).length, 2)
})

test('what the database says comes through the library as it was', async () => {
  await using away = new Pool('postgresql://127.0.0.1:1/none', { name: 'away', max: 1 })
  await using signIn = openSignIn({ pool: away, ...options })
  const person = { email: 'ada@example.com', password: 'correct horse', name: 'Ada' }
  await assert.rejects(signIn.signUp(person), isRetryable)
  await assert.rejects(signIn.createSession(person), isRetryable)
  await assert.rejects(signIn.confirmReset('token', 'a new one'), isRetryable)
  await using database = await testDatabase()
  await using broken = openSignIn({ pool: database.pool, ...options })
  await database.pool.query('alter table users rename to gone')
  await assert.rejects(broken.createSession(person), { code: '42P01' })
})

test('each reason of the library for not signing in is one of ours, and one that nobody foresaw keeps its words', () => {
  const refused = (code: string) => signInRefusal({ body: { code }, message: 'as the library says it' })
  assert.equal(refused('INVALID_EMAIL_OR_PASSWORD').code, 'invalid_credentials')
  assert.equal(refused('EMAIL_NOT_VERIFIED').code, 'email_verification_required')
  const other = refused('FAILED_TO_CREATE_SESSION')
  assert.deepEqual([other.code, other.message], ['token_create_failed', 'as the library says it'])
})
