import { setTimeout as sleep } from 'node:timers/promises'
import { distinctIdOf } from './ids.ts'
import { ask, post } from './seed.ts'
import { allReady } from './segments.ts'
import type { FirstRun } from './service.ts'

const experiences = ['bench_one', 'bench_two', 'bench_three']
/** What the releases ask for between them: ten properties, two memberships, one assignment. */
const properties = Array.from({ length: 10 }, (_, i) => `bench_${i}`)
const variants = ['a', 'b'].map((id) => ({ id, weight: 0.5, is_holdout: false }))
const descriptorBytes = 4096
const callers = 32
const readyMsMax = 120_000
const pollMs = 100

/**
 * Publishes three Experiences that everybody may begin, with descriptors of 4 KiB, and gives the customers what their facts are
 * made of. From then on every profile has three legs.
 */
export async function makeLegs(firstRun: FirstRun, apiKey: string, customers: number): Promise<void> {
  // The demo's own would be a fourth.
  await post(firstRun, '/experiences/welcome/unpublish', {})
  const key = await post(firstRun, '/signing_keys', { key_id: 'bench' })
  await post(firstRun, `/signing_keys/${key.id}/activate`, {})
  const segments = await Promise.all(
    ['first', 'other'].map((value) => {
      const where = { property: { key: properties[0], op: 'eq', value } }
      return post(firstRun, '/segments', { name: value, definition: { version: 1, where } })
    }),
  )
  await until(() => allReady(firstRun), 'the segments did not become ready')
  const experiment = await post(firstRun, '/experiments', { key: 'bench', name: 'bench', variants })
  await post(firstRun, `/experiments/${experiment.id}/start`, {})
  await setProperties(firstRun, customers)
  for (const [i, name] of experiences.entries()) {
    await post(firstRun, '/experiences', { key: name, name })
    const read = properties.filter((_, n) => n % experiences.length === i)
    await publish(firstRun, apiKey, name, {
      read,
      segment: segments[i % segments.length]?.id ?? '',
      experiment: i === 0 ? experiment.id : null,
    })
  }
  await until(() => hasLegs(firstRun, apiKey, customers - 1), 'the legs did not arrive')
  // The first profile that asks for a variant stores it; what is measured are the ones after it.
  await forEach(customers, (customer) => profileOf(firstRun, apiKey, customer))
}

async function setProperties(firstRun: FirstRun, customers: number): Promise<void> {
  const values = Object.fromEntries(properties.map((name, i) => [name, i === 0 ? 'first' : `value ${i}`]))
  await forEach(customers, (customer) =>
    post(firstRun, '/customers', { distinct_id: distinctIdOf(customer), properties: values }),
  )
}

async function forEach(customers: number, work: (customer: number) => Promise<unknown>): Promise<void> {
  let next = 0
  const caller = async () => {
    while (next < customers) await work(next++)
  }
  await Promise.all(Array.from({ length: callers }, caller))
}

/** Twice: the first time to see how long the descriptor is without its padding. */
async function publish(firstRun: FirstRun, apiKey: string, name: string, asks: Asks): Promise<void> {
  await publishPadded(firstRun, name, { ...asks, padding: 0, revision: 0 })
  const { releases } = await profileOf(firstRun, apiKey, 0)
  const own = releases.find(({ envelope }) => isNamed(envelope.descriptorBytesBase64, name))
  const bare = own?.envelope.descriptorSizeBytes ?? 0
  await publishPadded(firstRun, name, { ...asks, padding: descriptorBytes - bare, revision: 1 })
}

interface Asks {
  read: string[]
  segment: string
  experiment: string | null
}

async function publishPadded(
  firstRun: FirstRun,
  name: string,
  { padding, revision, ...asks }: Asks & { padding: number; revision: number },
): Promise<void> {
  const headers = { 'content-type': 'application/json', 'if-match': String(revision) }
  const body = JSON.stringify(draftOf(name, asks, 'x'.repeat(padding)))
  await ask(firstRun, `/experiences/${name}/draft`, { method: 'PUT', headers, body })
  await post(firstRun, `/experiences/${name}/versions`, {})
}

function isNamed(base64: string, name: string): boolean {
  return Buffer.from(base64, 'base64').includes(`"name":"${name}"`)
}

function draftOf(name: string, { read, segment, experiment }: Asks, padding: string): object {
  const asked = [
    ...read.map((key) => ({ type: 'User', op: 'is_set', key })),
    { type: 'Segment', op: 'is_member', id: segment },
  ]
  const condition = { ir_version: 1, expr: { type: 'Or', args: asked } }
  const listed = variants.map(({ id }) => ({ id, isHoldout: false }))
  const fork = {
    ...{ id: 'fork', plane: 'device', outlets: { a: 'tell', b: 'tell' } },
    action: { type: 'experiment', experimentId: experiment, fallbackVariantId: 'a', variants: listed },
  }
  const payload = { padding: { type: 'String', value: padding } }
  return {
    draftVersion: 1,
    platforms: ['ios', 'android'],
    locales: { default: 'en' },
    metadata: { name, appDefaultTimezone: 'UTC' },
    policy: {
      entry: { trigger: { type: 'event', eventName: 'bench_viewed', condition }, frequency: { type: 'every_match' } },
      exitWhenAny: [],
    },
    graph: {
      entry: experiment === null ? 'tell' : 'fork',
      steps: [
        ...(experiment === null ? [] : [fork]),
        {
          ...{ id: 'tell', plane: 'device', outlets: { next: null } },
          action: { type: 'send_event', eventName: 'bench_told', payload },
        },
      ],
    },
    presentation: { style: 'full_screen', orientation: 'any', backgroundColor: '#FFFFFFFF' },
  }
}

interface Profile {
  facts: { properties: object; memberships: object }
  armedLegs: object[]
  releases: { envelope: { descriptorSizeBytes: number; descriptorBytesBase64: string } }[]
}

async function profileOf({ base_url: base }: FirstRun, apiKey: string, customer: number): Promise<Profile> {
  const headers = { 'content-type': 'application/json' }
  const body = JSON.stringify({ apiKey, distinct_id: distinctIdOf(customer) })
  const response = await fetch(`${base}/profile`, { method: 'POST', headers, body })
  return (await response.json()) as Profile // the caller knows what is answered there
}

async function hasLegs(firstRun: FirstRun, apiKey: string, customer: number): Promise<boolean> {
  const { armedLegs, facts } = await profileOf(firstRun, apiKey, customer)
  const isMember = Object.values(facts.memberships).includes(true)
  return armedLegs.length >= experiences.length && Object.keys(facts.properties).length >= properties.length && isMember
}

async function until(isSo: () => Promise<boolean>, otherwise: string): Promise<void> {
  const deadline = performance.now() + readyMsMax
  while (!(await isSo())) {
    if (performance.now() > deadline) throw new Error(otherwise)
    await sleep(pollMs)
  }
}
