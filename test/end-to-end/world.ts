import assert from 'node:assert/strict'
import type { Body } from '../app/answers.ts'
import { eventually, send } from '../app/project.ts'
import type { TestService } from '../harness/service.ts'
import { openStage, type Stage } from '../journeys/stage.ts'
import { type Device, openDevice } from '../reference-client/device.ts'
import type { Transport } from '../reference-client/outbox.ts'

export interface DeviceAs {
  transport?: Transport
  /** How far the device's clock is behind. */
  behindMs?: number
  /** Those it was shipped with; all that the service has told of by default. */
  keys?: ReadonlyMap<string, Uint8Array>
}

/** A stage with devices of customers, which know the keys that the service tells of. */
export interface World extends Stage {
  /** Two of one distinct id are two devices of one customer. */
  device: (distinctId: string, as?: DeviceAs) => Device
  keys: Map<string, Uint8Array>
  /** As devices are shipped with them: staged ones too. */
  shipKeys: () => Promise<void>
  /** Fetches until the profile is so; every one on the way has to be taken. */
  synced: (device: Device, is: (profile: NonNullable<ReturnType<Device['profile']>>) => boolean) => Promise<void>
  customerOf: (distinctId: string) => Promise<Body>
  /** How often the customer's log holds an event of this name. */
  countOf: (distinctId: string, event: string) => Promise<number>
}

export async function openWorld(service: TestService): Promise<World> {
  const stage = await openStage(service)
  const { app, project } = stage
  const keys = new Map<string, Uint8Array>()
  const shipKeys = async () => {
    const made = (await project.get(`/signing_keys?project_id=${project.id}`)).data
    // They are told of within moments.
    await eventually(async () => {
      const { body } = await send(service.url, 'GET', '/.well-known/release-keys', undefined)
      for (const { kid, x } of body.keys) keys.set(kid, Buffer.from(x, 'base64url'))
      return made.every(({ key_id: id }: Body) => keys.has(id))
    }, 20_000)
  }
  await shipKeys()
  return {
    ...stage,
    keys,
    shipKeys,
    device: (distinctId, { transport = lineTo(service), behindMs = 0, keys: shipped = keys } = {}) =>
      openDevice({
        ...{ apiKey: app.key, distinctId, namespace: 'service', mode: 'clients', keys: shipped, transport },
        now: () => Date.now() - behindMs,
      }),
    synced: async (device, is) => {
      let heard: unknown[] = []
      await eventually(async () => {
        const synced = await device.sync()
        assert.notEqual(synced.kind, 'refused', JSON.stringify(synced))
        const profile = device.profile()
        heard = [...heard.slice(-3), synced.kind, profile?.armedLegs, profile?.features]
        return profile !== undefined && is(profile)
      }, 20_000).catch((cause: unknown) => {
        throw new Error(`the profile is not so: ${JSON.stringify(heard)}`, { cause })
      })
    },
    customerOf: (distinctId) => project.get(`/customers/by_distinct_id/${distinctId}?project_id=${project.id}`),
    async countOf(distinctId, event) {
      const [row] = await service.pool.query<{ count: number }>(
        'select count(*)::int as count from event where scope_id = $1 and distinct_id = $2 and event = $3',
        [await project.scopeId(), distinctId, event],
      )
      return row?.count ?? 0
    },
  }
}

/** The real way to the service; what `losing` says of the n-th call is answered, and not heard. */
export function lineTo(service: TestService, losing: (call: number, path: string) => boolean = () => false): Transport {
  let calls = 0
  return async (path, body, headers) => {
    const answer = await send(service.url, 'POST', path, typeof body === 'string' ? body : Buffer.from(body), headers)
    calls += 1
    if (losing(calls, path)) throw new Error('the line was cut before the answer came')
    return answer
  }
}

/** What the device may begin, and what it may go on with: journey and generation. */
export function armsOf(device: Device): { fresh: number; onward: { journeyId: string; generation: number }[] } {
  const bindings = device.profile()?.armedLegs.map(({ binding }) => binding) ?? []
  return {
    fresh: bindings.filter(({ type }) => type === 'new').length,
    onward: bindings
      .filter(({ type }) => type === 'continue')
      .map(({ journeyId, generation }) => ({ journeyId: String(journeyId), generation: Number(generation) })),
  }
}

/** What its outbox says of legs. */
export function reportsOf(device: Device) {
  return device.outbox().filter(({ event }) => event.startsWith('$journey_leg_'))
}

/** The journey that its first report names. */
export function journeyOf(device: Device): string {
  return String(reportsOf(device)[0]?.properties.journey_id)
}
