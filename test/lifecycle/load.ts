import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { must } from '../../src/kernel/assert.ts'

/** Where the service is at the moment, and with which publishable key. */
export interface Target {
  url: string
  key: string
}

/** A command and the one final answer that its caller got, however often it had to ask. */
export interface Spend {
  operationId: string
  customer: string
  quantity: number
  mode: 'consume' | 'set_usage'
  answer: Record<string, unknown>
}

/** What callers were told. */
export interface Acknowledged {
  /** Sent until they were acknowledged; the distinct id by uuid. */
  events: Map<string, string>
  /** Sent once each, whatever came back. */
  once: { sent: Map<string, string>; acknowledged: Set<string> }
  spends: Spend[]
  /** Refused for the time being, by status, and connections that broke. */
  setbacks: { unavailable: number; broken: number }
}

export interface LoadOptions {
  target: Target
  customers: readonly string[]
  clients: number
  requestsPerClient: number
  /** Called after every acknowledged request with their number. */
  onProgress?: (acknowledged: number) => void
}

const pauseMs = 20

/** As many clients as told, each with one request at a time: events, batches and spends in turns, none given up. */
export async function load({
  target,
  customers,
  clients,
  requestsPerClient,
  onProgress,
}: LoadOptions): Promise<Acknowledged> {
  const done: Acknowledged = {
    events: new Map(),
    once: { sent: new Map(), acknowledged: new Set() },
    spends: [],
    setbacks: { unavailable: 0, broken: 0 },
  }
  let count = 0

  /** Undefined: nothing is known, as callers must take a 503 and a broken connection. Anything else is an answer. */
  async function ask(path: string, body: object, gzip = false): Promise<Record<string, unknown> | undefined> {
    const json = JSON.stringify({ apiKey: target.key, ...body })
    const headers = { 'content-type': 'application/json', ...(gzip ? { 'content-encoding': 'gzip' } : {}) }
    let status: number
    let answer: Record<string, unknown>
    try {
      const response = await fetch(`${target.url}${path}`, {
        method: 'POST',
        headers,
        body: gzip ? gzipSync(json) : json,
      })
      status = response.status
      answer = (await response.json()) as Record<string, unknown>
    } catch {
      done.setbacks.broken++
      return undefined
    }
    if (status !== 503) {
      assert.equal(status, 200, JSON.stringify(answer))
      onProgress?.(++count)
      return answer
    }
    assert.match(String(answer.code), /^(service|billing)_unavailable$/)
    done.setbacks.unavailable++
    return undefined
  }

  async function untilAnswered(path: string, body: object, gzip = false): Promise<Record<string, unknown>> {
    for (;;) {
      const answer = await ask(path, body, gzip)
      if (answer) return answer
      await sleep(pauseMs)
    }
  }

  const turns: ((client: number, turn: number) => Promise<void>)[] = [
    async (client) => {
      const event = eventOf(`counted ${client}`)
      const answer = await untilAnswered('/event', event)
      assert.deepEqual([answer.status, answer.eventId], ['ok', event.uuid])
      done.events.set(event.uuid, event.distinct_id)
    },
    async (client, turn) => {
      const customer = must(
        customers[Math.floor((client + turn) / turns.length) % customers.length],
        'there are customers',
      )
      const mode = turn % 5 === 1 ? 'set_usage' : 'consume'
      const [operationId, quantity] = [randomUUID(), mode === 'consume' ? 1 + (turn % 3) : 1 + turn * 2]
      const spend = { operationId, customer, quantity, mode } as const
      done.spends.push({ ...spend, answer: await untilAnswered('/feature/consume', commandOf(spend)) })
    },
    async (client) => {
      const batch = Array.from({ length: 20 }, () => eventOf(`counted ${client}`))
      const answer = await untilAnswered('/batch', { batch }, true)
      assert.deepEqual([answer.status, answer.accepted], ['success', batch.length])
      for (const { uuid, distinct_id } of batch) done.events.set(uuid, distinct_id)
    },
    async (client) => {
      const event = eventOf(`once ${client}`)
      done.once.sent.set(event.uuid, event.distinct_id)
      if (await ask('/event', event)) done.once.acknowledged.add(event.uuid)
      else await sleep(pauseMs)
    },
  ]

  await Promise.all(
    Array.from({ length: clients }, async (_, client) => {
      for (let turn = 0; turn < requestsPerClient; turn++) await turns[(client + turn) % turns.length]?.(client, turn)
    }),
  )
  return done
}

export function commandOf({ operationId, customer, quantity, mode }: Omit<Spend, 'answer'>) {
  return { customerId: customer, featureId: 'exports', operationId, quantity, mode }
}

function eventOf(distinctId: string) {
  return {
    event: 'counted',
    uuid: randomUUID(),
    distinct_id: distinctId,
    properties: { $increment: { n: 1 } },
  }
}
