import { createHash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { foreseeBirths } from '../customers/index.ts'
import type { Pool } from '../db/pool.ts'
import type { Catalogues, Whose } from '../entitlements/index.ts'
import { assign, type Deliveries } from '../experiences/index.ts'
import { must } from '../kernel/assert.ts'
import { refuse } from '../kernel/errors.ts'
import { profileTagsMax, profileTriesMax } from '../kernel/limits.ts'
import { retryAfterS } from '../kernel/retry-after.ts'
import type { AppScope, Scope } from '../tenancy/index.ts'
import { assemble, type Missing, type Trace } from './assemble.ts'
import type { Body } from './body.ts'
import { unitOf } from './facts.ts'
import { createReadPerson, type ReadOptions } from './read.ts'
import type { Ground, Person, Wire } from './types.ts'
import { createUnchanged } from './unchanged.ts'
import type { Remembered } from './unchanged-store.ts'

export interface ProfileOptions extends ReadOptions {
  catalogues: Catalogues
  deliveries: Deliveries
  /** For what is written when something is first delivered. */
  writePool: Pool
  wire: Wire
}

interface Profile {
  tag: string
  body: Body
  validUntil: number | null
}

/** A profile as it stood when it was assembled: its tag and what has to be unchanged. Never customer state. */
interface Known extends Remembered {
  tag: string
  /** How many bytes it had. */
  size: number
}

/** The same profile as the app is given, and how it came about. */
export interface Explained extends Profile {
  trace: Trace
}

type Assembled = Omit<Profile, 'tag'> & { person: Person }

type DeviceApp = Pick<AppScope, 'appId' | 'platform'>

export interface Profiles {
  /** The tag that a caller may be remembering, if the profile is the same; undefined when it has to be assembled. */
  knownTag: (scope: AppScope, distinctId: string, locale: string | null) => Promise<string | undefined>
  /** Throws `customer_deleted`. */
  get: (scope: AppScope, distinctId: string, locale: string | null) => Promise<Profile>
  /** Remembers and writes nothing. */
  explain: (scope: Scope, customerId: string, app: DeviceApp & { locale: string | null }) => Promise<Explained>
}

export function createProfiles(options: ProfileOptions): Profiles {
  const { catalogues, deliveries, wire } = options
  const known = new LRUCache<string, Known>({ max: profileTagsMax })
  const holds = createUnchanged(options)
  const readPerson = createReadPerson(options)

  /** The Features and what is published, both of one revision. */
  async function groundOf(scope: Scope, atLeast: bigint): Promise<Ground> {
    for (let tries = 0; tries < profileTriesMax; tries++) {
      const delivery = await deliveries.get(scope, atLeast)
      const held = catalogues.current(scope)
      const catalogue = held && held.revision >= delivery.revision ? held : await catalogues.load(scope)
      if (catalogue.revision === delivery.revision) return { catalogue, delivery }
      atLeast = catalogue.revision
    }
    throw moving()
  }

  async function make(whose: Whose, app: DeviceApp, locale: string | null, trace?: Trace): Promise<Assembled> {
    let atLeast = 0n
    let born: Pick<Person, 'birthId'> = {}
    for (let tries = 0; tries < profileTriesMax; tries++) {
      const ground = await groundOf(whose.scope, atLeast)
      const { delivery } = ground
      const person = await readPerson({ ...whose, ...born, delivery })
      atLeast = person.revision
      // Published after the snapshot was read: what was asked of the customer may not be all.
      if (delivery.revision !== person.revision) continue
      trace?.experiences.clear()
      trace?.journeys.clear()
      const assembly = assemble({ ...ground, wire, app, person, locale }, trace)
      if (assembly.kind === 'profile') {
        const { body, validUntil } = assembly
        return { person, body, validUntil }
      }
      await delivery.fetch(assembly.missing)
      if (assembly.missing.birth && 'distinctId' in whose) born = await foresee(whose)
      await give(whose.scope, person, assembly.missing)
    }
    throw moving()
  }

  /** Should the id be born meanwhile, the person is read with its record. */
  async function foresee({ scope, distinctId }: { scope: Scope; distinctId: string }): Promise<{ birthId: string }> {
    const births = await options.pool.connected((client) => foreseeBirths(client, scope, [distinctId]))
    return { birthId: must(births.get(distinctId), 'a birth is foreseen').customerId }
  }

  /** Committed before anybody is told of it. With all that is delivered known, so that nobody is given what is not sent. */
  async function give(scope: Scope, person: Person, { assignments, releases, pins }: Missing) {
    const { now } = person
    const customerId = unitOf(person)
    if (customerId === undefined || assignments.length === 0 || releases.length + pins.length > 0) return
    const questions = assignments.map((experimentId) => ({ experimentId, customerId }))
    await options.writePool.transaction((tx) => assign(tx, scope, questions, now))
  }

  /** The tag, remembered; not hashed anew where everything is as it was when it was: a 304 relies on no less. */
  function tagFor(key: string, { scopeId }: Scope, { person, body, validUntil }: Assembled): string {
    const { customerId, revision, rev, versions } = person
    if (customerId === undefined) return tagOf(body)
    const size = Buffer.byteLength(body.text) + body.rest.length
    const made = { scopeId, revision, customerId, rev, versions: Number(versions), validUntil, size }
    const last = known.get(key)
    if (last && isSame(last, made)) return last.tag
    const tag = tagOf(body)
    known.set(key, { ...made, tag })
    return tag
  }

  return {
    async knownTag(scope, distinctId, locale) {
      const one = known.get(keyOf(scope, distinctId, locale))
      return one && (await holds(one)) ? one.tag : undefined
    },
    async get(scope, distinctId, locale) {
      const made = await make({ scope, distinctId }, scope, locale)
      const { body, validUntil } = made
      return { tag: tagFor(keyOf(scope, distinctId, locale), scope, made), body, validUntil }
    },
    async explain(scope, customerId, { locale, ...app }) {
      const trace: Trace = { experiences: new Map(), journeys: new Map() }
      const { body, validUntil } = await make({ scope, customerId }, app, locale, trace)
      return { tag: tagOf(body), body, validUntil, trace }
    },
  }
}

/** Until the same instant, too: both were made before it, and neither has an earlier one between them. */
function isSame(a: Omit<Known, 'tag'>, b: Omit<Known, 'tag'>): boolean {
  return (
    a.rev === b.rev &&
    a.versions === b.versions &&
    a.revision === b.revision &&
    a.validUntil === b.validUntil &&
    a.customerId === b.customerId &&
    a.scopeId === b.scopeId &&
    a.size === b.size
  )
}

function keyOf({ appId, environment }: AppScope, distinctId: string, locale: string | null): string {
  return `${appId} ${environment} ${locale?.length ?? 0} ${locale ?? ''}${distinctId}`
}

function tagOf({ text, rest }: Body): string {
  return `"${createHash('sha256').update(text).update(rest).digest('base64url')}"`
}

/** The catalogue changes faster than it is read. */
function moving() {
  return refuse('service_unavailable', { retryAfterS: retryAfterS() })
}
