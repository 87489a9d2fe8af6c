import { isIP } from 'node:net'
import { resolve } from 'node:path'
import { workspaceRequestsPerMinute } from './kernel/limits.ts'
import { StartError } from './kernel/start-error.ts'

/** The settings of one process, read once. Frozen; secrets in it are never logged. */
export interface Config {
  host: string
  /** 0: any free port; derived addresses then name port 0 until the settings are read again with the real one. */
  port: number
  /** Absent: the embedded PostgreSQL below `dataDir`. */
  databaseUrl: string | undefined
  /** Absolute. */
  dataDir: string
  /** The word inside schema strings, media types and header names. */
  namespace: string
  /** 32 bytes. Absent: made on the first run and kept in `dataDir`; only possible with the embedded PostgreSQL. */
  masterKey: Buffer | undefined
  /** http or https, without a slash at the end. */
  publicUrl: string
  /** https and ending in a slash: clients refuse a profile that carries anything else. */
  renderBaseUrl: string
  assetBaseUrl: string
  role: { readonly api: boolean; readonly worker: boolean }
  /** Absent: mails go to the log. */
  smtpUrl: string | undefined
  setupEmail: string
  /** Absent: a random one, shown once. */
  setupPassword: string | undefined
  demo: boolean
  /** How long events are kept after they were received. */
  eventRetentionDays: number
  /** Absent: metrics are for loopback callers only. */
  metricsToken: string | undefined
  /** Webhooks may go to addresses of the own host and network. */
  webhooksToPrivate: boolean
  /** Requests a minute of one key or user; 0: no limit. */
  workspaceRateLimit: number
  logLevel: string
}

/** A setting that is unknown, missing or malformed. One line, names the setting and what it accepts, never its value. */
export class ConfigError extends StartError {
  override readonly name = 'ConfigError'
}

const logLevels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']

/** What each setting accepts, in words and as a check. */
const settings = {
  HOST: ['a host name or an IP address', isHost],
  PORT: ['a whole number from 0 to 65535', (text) => /^\d{1,5}$/.test(text) && Number(text) <= 65535],
  DATABASE_URL: ['a postgresql:// address, special characters of its password percent-encoded', isDatabaseUrl],
  DATA_DIR: ['a path', (text) => !text.includes('\0')],
  NAMESPACE: ['a word of 3 to 32 lower-case ASCII letters', (text) => /^[a-z]{3,32}$/.test(text)],
  MASTER_KEY: ['32 bytes in base64 (openssl rand -base64 32)', isKey],
  PUBLIC_URL: ['an http or https address without user, query and fragment', (text) => isBase(text, /^https?:$/)],
  RENDER_BASE_URL: ['an https address ending in / without user, query and fragment', isHttpsFolder],
  ASSET_BASE_URL: ['an https address ending in / without user, query and fragment', isHttpsFolder],
  ROLE: [
    'all, api, worker or a comma list of them',
    (text) => roles(text).every((role) => /^(all|api|worker)$/.test(role)),
  ],
  SMTP_URL: ['an smtp:// or smtps:// address', (text) => isUrl(text, /^smtps?:$/) && new URL(text).hostname !== ''],
  SETUP_EMAIL: ['an e-mail address', (text) => text.length <= 254 && /^[^\s@]+@[^\s@]+$/.test(text)],
  SETUP_PASSWORD: ['8 to 256 characters', (text) => text.length >= 8 && text.length <= 256],
  DEMO: ['0 or 1', (text) => text === '0' || text === '1'],
  EVENT_RETENTION_DAYS: [
    'a whole number from 31 to 36500',
    (text) => /^\d{2,5}$/.test(text) && Number(text) >= 31 && Number(text) <= 36_500,
  ],
  WORKSPACE_RATE_LIMIT: ['a whole number of requests a minute, 0 for no limit', (text) => /^\d{1,9}$/.test(text)],
  WEBHOOK_PRIVATE_ADDRESSES: ['0 or 1', (text) => text === '0' || text === '1'],
  METRICS_TOKEN: ['1 to 256 visible ASCII characters', (text) => /^[!-~]{1,256}$/.test(text)],
  LOG_LEVEL: [logLevels.join(', '), (text) => logLevels.includes(text)],
} as const satisfies Record<string, readonly [accepts: string, accepted: (text: string) => boolean]>

type Setting = keyof typeof settings
type Environment = Record<string, string | undefined>

/** Reads the settings; relative paths start at `cwd`. Throws ConfigError. */
export function readConfig(env: Environment = process.env, cwd: string = process.cwd()): Config {
  for (const name of Object.keys(env)) refuseUnknown(name)
  for (const name of settingNames()) refuseMalformed(name, env[name])

  const host = env.HOST ?? '127.0.0.1'
  const port = Number(env.PORT ?? 4000)
  const publicUrl = trimSlash(new URL(env.PUBLIC_URL ?? `http://${reachable(host)}:${port}`).href)
  const databaseUrl = env.DATABASE_URL
  const masterKey = env.MASTER_KEY
  if (databaseUrl !== undefined && masterKey === undefined) {
    throw new ConfigError(`MASTER_KEY is required with DATABASE_URL: ${settings.MASTER_KEY[0]}`)
  }
  return Object.freeze({
    host,
    port,
    databaseUrl,
    dataDir: resolve(cwd, env.DATA_DIR ?? 'data'),
    namespace: env.NAMESPACE ?? 'service',
    masterKey: masterKey === undefined ? undefined : Buffer.from(masterKey, 'base64'),
    publicUrl,
    renderBaseUrl: new URL(env.RENDER_BASE_URL ?? folderOf(publicUrl, 'r')).href,
    assetBaseUrl: new URL(env.ASSET_BASE_URL ?? folderOf(publicUrl, 'a')).href,
    role: roleOf(env.ROLE ?? 'all'),
    smtpUrl: env.SMTP_URL,
    setupEmail: env.SETUP_EMAIL ?? 'owner@localhost',
    setupPassword: env.SETUP_PASSWORD,
    demo: (env.DEMO ?? (databaseUrl === undefined ? '1' : '0')) === '1',
    eventRetentionDays: Number(env.EVENT_RETENTION_DAYS ?? 400),
    metricsToken: env.METRICS_TOKEN,
    webhooksToPrivate: env.WEBHOOK_PRIVATE_ADDRESSES === '1',
    workspaceRateLimit: Number(env.WORKSPACE_RATE_LIMIT ?? workspaceRequestsPerMinute),
    logLevel: env.LOG_LEVEL ?? 'info',
  })
}

/** Our own prefixes and one-letter slips of our names are taken for mistakes; short names are too common for the latter. */
function refuseUnknown(name: string): void {
  if (Object.hasOwn(settings, name)) return
  const meant = settingNames().find((known) => known.length >= 6 && isOneSlipAway(name.toUpperCase(), known))
  if (meant) throw new ConfigError(`${name} is not a setting: did you mean ${meant}?`)
  if (/^(SETUP|TURNPIKE)_/.test(name)) {
    throw new ConfigError(`${name} is not a setting: the settings are ${settingNames().join(', ')}`)
  }
}

function refuseMalformed(name: Setting, text: string | undefined): void {
  if (text === undefined) return
  const [accepts, accepted]: readonly [string, (text: string) => boolean] = settings[name]
  // An empty value is most often a substitution that failed; taking the default for it would hide that.
  if (text === '') throw new ConfigError(`${name} is empty: leave it out, or give ${accepts}`)
  if (!accepted(text)) throw new ConfigError(`${name} is not valid: it accepts ${accepts}`)
}

function settingNames(): Setting[] {
  return Object.keys(settings) as Setting[] // the keys of a literal
}

/** Equal, or one letter added, left out, changed or swapped with its neighbour (Damerau–Levenshtein distance at most 1). */
function isOneSlipAway(a: string, b: string): boolean {
  let i = 0
  while (i < a.length && a[i] === b[i]) i++
  const swapped = a[i] === b[i + 1] && a[i + 1] === b[i] && a.slice(i + 2) === b.slice(i + 2)
  return swapped || a.slice(i + 1) === b.slice(i) || a.slice(i) === b.slice(i + 1) || a.slice(i + 1) === b.slice(i + 1)
}

function isHost(text: string): boolean {
  return (
    isIP(text) !== 0 || (text.length <= 253 && /^[a-z\d]([a-z\d.-]*[a-z\d])?$/i.test(text) && !/^[\d.]+$/.test(text))
  )
}

function isUrl(text: string, protocol: RegExp): boolean {
  return URL.canParse(text) && protocol.test(new URL(text).protocol)
}

function isDatabaseUrl(text: string): boolean {
  return isUrl(text, /^postgres(ql)?:$/) && !/%(?![\da-f]{2})/i.test(text)
}

function isBase(text: string, protocol: RegExp): boolean {
  if (!isUrl(text, protocol)) return false
  const { username, password } = new URL(text)
  return username === '' && password === '' && !/[?#]/.test(text)
}

function isHttpsFolder(text: string): boolean {
  return isBase(text, /^https:$/) && text.endsWith('/')
}

function isKey(text: string): boolean {
  const bytes = Buffer.from(text, 'base64')
  return bytes.length === 32 && bytes.toString('base64') === text
}

function roles(text: string): string[] {
  return text.split(',').map((role) => role.trim())
}

function roleOf(text: string): Config['role'] {
  const named = roles(text)
  const all = named.includes('all')
  return Object.freeze({ api: all || named.includes('api'), worker: all || named.includes('worker') })
}

/** An address others can call; listening on every interface is told by the loopback one. */
function reachable(host: string): string {
  if (host === '0.0.0.0' || host === '::') return '127.0.0.1'
  return isIP(host) === 6 ? `[${host}]` : host
}

function trimSlash(url: string): string {
  return url.replace(/\/+$/, '')
}

/** https whatever the service itself speaks. Never ends in an artefact key's first segment, which clients would drop. */
function folderOf(publicUrl: string, folder: string): string {
  return `${publicUrl.replace(/^http:/, 'https:')}/${folder}/`
}
