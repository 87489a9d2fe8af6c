import assert from 'node:assert/strict'
import test from 'node:test'
import { ConfigError, readConfig } from './config.ts'

const key = Buffer.alloc(32, 7).toString('base64')
const read = (env: Record<string, string | undefined>) => readConfig(env, '/srv/turnpike')

test('with nothing set everything runs on the embedded database, with the demo', () => {
  assert.deepEqual(read({ PATH: '/bin', HOME: '/home/me' }), {
    host: '127.0.0.1',
    port: 4000,
    databaseUrl: undefined,
    dataDir: '/srv/turnpike/data',
    namespace: 'service',
    masterKey: undefined,
    publicUrl: 'http://127.0.0.1:4000',
    renderBaseUrl: 'https://127.0.0.1:4000/r/',
    assetBaseUrl: 'https://127.0.0.1:4000/a/',
    role: { api: true, worker: true },
    smtpUrl: undefined,
    setupEmail: 'owner@localhost',
    setupPassword: undefined,
    demo: true,
    eventRetentionDays: 400,
    metricsToken: undefined,
    webhooksToPrivate: false,
    workspaceRateLimit: 60_000,
    logLevel: 'info',
  })
})

test('every setting can be set', () => {
  const env = {
    HOST: '0.0.0.0',
    PORT: '0',
    DATABASE_URL: 'postgresql://me:secret@db.example.com/turnpike?sslmode=require',
    DATA_DIR: '../my data',
    NAMESPACE: 'acme',
    MASTER_KEY: key,
    PUBLIC_URL: 'https://api.example.com/turnpike/',
    RENDER_BASE_URL: 'https://cdn.example.com/r/',
    ASSET_BASE_URL: 'https://cdn.example.com/a/',
    ROLE: 'worker',
    SMTP_URL: 'smtps://me:secret@mail.example.com:465',
    SETUP_EMAIL: 'me@example.com',
    SETUP_PASSWORD: 'correct horse',
    DEMO: '1',
    EVENT_RETENTION_DAYS: '90',
    METRICS_TOKEN: 'scrape-me',
    WEBHOOK_PRIVATE_ADDRESSES: '1',
    WORKSPACE_RATE_LIMIT: '0',
    LOG_LEVEL: 'debug',
  }
  assert.deepEqual(read(env), {
    host: '0.0.0.0',
    port: 0,
    databaseUrl: env.DATABASE_URL,
    dataDir: '/srv/my data',
    namespace: 'acme',
    masterKey: Buffer.alloc(32, 7),
    publicUrl: 'https://api.example.com/turnpike',
    renderBaseUrl: env.RENDER_BASE_URL,
    assetBaseUrl: env.ASSET_BASE_URL,
    role: { api: false, worker: true },
    smtpUrl: env.SMTP_URL,
    setupEmail: 'me@example.com',
    setupPassword: 'correct horse',
    demo: true,
    eventRetentionDays: 90,
    metricsToken: 'scrape-me',
    webhooksToPrivate: true,
    workspaceRateLimit: 0,
    logLevel: 'debug',
  })
})

test('with a database of its own the master key is required and the demo is off', () => {
  const DATABASE_URL = 'postgres://localhost/turnpike'
  assert.throws(() => read({ DATABASE_URL }), /^ConfigError: MASTER_KEY is required with DATABASE_URL/)
  assert.equal(read({ DATABASE_URL, MASTER_KEY: key }).demo, false)
  assert.equal(read({ DATABASE_URL: 'postgresql:///turnpike?host=/run/postgresql', MASTER_KEY: key }).demo, false)
})

test('addresses are derived so that others can call them and clients accept them', () => {
  const derived = (env: Record<string, string>) => {
    const { publicUrl, renderBaseUrl } = read(env)
    return [publicUrl, renderBaseUrl]
  }
  assert.deepEqual(derived({ HOST: '0.0.0.0', PORT: '8080' }), ['http://127.0.0.1:8080', 'https://127.0.0.1:8080/r/'])
  assert.deepEqual(derived({ HOST: '::' }), ['http://127.0.0.1:4000', 'https://127.0.0.1:4000/r/'])
  assert.deepEqual(derived({ HOST: '::1' }), ['http://[::1]:4000', 'https://[::1]:4000/r/'])
  assert.deepEqual(derived({ HOST: 'box.local', PORT: '80' }), ['http://box.local', 'https://box.local/r/'])
  assert.deepEqual(derived({ PUBLIC_URL: 'http://a.example' }), ['http://a.example', 'https://a.example/r/'])
})

test('roles are a comma list', () => {
  assert.deepEqual(read({ ROLE: 'api' }).role, { api: true, worker: false })
  assert.deepEqual(read({ ROLE: 'api, worker' }).role, { api: true, worker: true })
  assert.deepEqual(read({ ROLE: 'all' }).role, { api: true, worker: true })
})

test('a malformed setting is refused in one line that names it, says what it accepts and keeps its value to itself', () => {
  const malformed: Record<string, string[]> = {
    HOST: ['', ' ', 'http://localhost', 'a b', '1.2.3', '999.1.1.1', '[::1]', '-a'],
    PORT: ['', '-1', '65536', '4000.5', '0x10', '4e3', ' 80', 'http', '100000'],
    DATABASE_URL: ['', 'localhost', 'mysql://db/x', 'http://db', 'postgres://me:100%@db/x'],
    DATA_DIR: ['', 'a\0b'],
    NAMESPACE: ['', 'ab', 'Acme', 'acme1', 'a-b', 'é'.repeat(3), 'a'.repeat(33)],
    MASTER_KEY: ['', 'secret', Buffer.alloc(31).toString('base64'), key.slice(0, -1), ` ${key}`, 'x'.repeat(64)],
    PUBLIC_URL: ['', 'example.com', 'ftp://example.com', 'https://a:b@c', 'https://c/?', 'https://c/#x', 'https://'],
    RENDER_BASE_URL: ['', 'http://c/r/', 'https://c/r', 'https://c/r/?x=/', 'https://u@c/r/', 'https://c/r/#/'],
    ASSET_BASE_URL: ['', 'http://c/a/', 'https://c/a', 'https://c/a/?x=/', 'https://u@c/a/', 'https://c/a/#/'],
    ROLE: ['', 'API', 'api,', 'api,web', 'api worker'],
    SMTP_URL: ['', 'mail.example.com', 'http://mail.example.com', 'smtp:'],
    SETUP_EMAIL: ['', 'owner', '@localhost', 'owner@', 'a b@c', `${'a'.repeat(250)}@b.de`],
    SETUP_PASSWORD: ['', 'short', 'x'.repeat(257)],
    DEMO: ['', 'true', '2', 'yes'],
    EVENT_RETENTION_DAYS: ['', '30', '36501', '31.5', '-40', '1e2'],
    METRICS_TOKEN: ['', 'a b', 'ä', 'x'.repeat(257)],
    WEBHOOK_PRIVATE_ADDRESSES: ['', 'true', '2', 'yes'],
    LOG_LEVEL: ['', 'verbose', 'INFO'],
  }
  for (const [name, values] of Object.entries(malformed)) {
    for (const value of values) {
      const error = refusalOf({ [name]: value })
      assert.match(error.message, new RegExp(`^${name} is (empty: leave it out, or give|not valid: it accepts) .+$`))
      if (value.length > 8) assert.ok(!error.message.includes(value), error.message)
    }
  }
})

test('a name one slip away from a setting is refused, with the setting that is meant', () => {
  for (const [slip, meant] of Object.entries({
    DATABSE_URL: 'DATABASE_URL',
    DATABASE_URLS: 'DATABASE_URL',
    DATABASE_URI: 'DATABASE_URL',
    DTAA_DIR: 'DATA_DIR',
    DATADIR: 'DATA_DIR',
    data_dir: 'DATA_DIR',
    LOGLEVEL: 'LOG_LEVEL',
    NAME_SPACE: 'NAMESPACE',
    SETUP_EMIAL: 'SETUP_EMAIL',
  })) {
    assert.equal(refusalOf({ [slip]: 'x' }).message, `${slip} is not a setting: did you mean ${meant}?`)
  }
})

test('an unknown name with a prefix of ours is refused', () => {
  for (const name of ['SETUP_NAME', 'TURNPIKE_PORT', 'TURNPIKE_']) {
    assert.match(
      refusalOf({ [name]: 'x' }).message,
      new RegExp(`^${name} is not a setting: the settings are HOST, PORT, `),
    )
  }
})

test('what others put into the environment is none of our business', () => {
  const env = {
    HOSTS: '1',
    PORTS: '1',
    POST: '1',
    DEMOS: '1',
    ROLES: '1',
    DATABASE: 'x',
    URL: 'x',
    constructor: 'x',
    npm_x: '',
  }
  assert.equal(read(env).port, 4000)
})

test('settings cannot be changed later', () => {
  const config = read({})
  assert.ok(Object.isFrozen(config) && Object.isFrozen(config.role))
})

function refusalOf(env: Record<string, string>): ConfigError {
  try {
    read(env)
  } catch (error) {
    assert.ok(error instanceof ConfigError)
    assert.doesNotMatch(error.message, /\n/)
    return error
  }
  return assert.fail(`${JSON.stringify(env)} was accepted`)
}
