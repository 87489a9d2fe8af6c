import { setTimeout as sleep } from 'node:timers/promises'
import { ask, post } from './seed.ts'
import type { FirstRun } from './service.ts'

const readyMsMax = 120_000
const pollMs = 100

/** Makes Segments that the bench's own events and properties move customers in and out of, and waits until they serve. */
export async function makeSegments(firstRun: FirstRun, count: number): Promise<void> {
  for (let n = 0; n < count; n++) {
    const definition = { version: 1, where: conditionOf(n) }
    await post(firstRun, '/segments', { name: `bench ${n}`, definition })
  }
  const deadline = performance.now() + readyMsMax
  while (!(await allReady(firstRun))) {
    if (performance.now() > deadline) throw new Error('the segments did not become ready')
    await sleep(pollMs)
  }
}

/** Of every kind that is kept up incrementally; each event touches most of them. */
function conditionOf(n: number): object {
  const viewed = { event: 'bench_viewed' }
  const within = { value: 1 + n, unit: 'hour' }
  const kinds = [
    { performed: { ...viewed, count: { op: 'gte', value: 1 + n }, within } },
    { property: { key: 'theme', op: 'eq', value: n % 2 === 0 ? 'dark' : 'light' } },
    { not: { performed: { ...viewed, filters: [{ property: 'position', op: 'gt', value: n }], within } } },
    { all: [{ sum: { ...viewed, property: 'price', op: 'gte', value: 10 * n, within } }, { property: screen }] },
    { any: [{ performed: { ...viewed, count: { op: 'lte', value: n }, within } }, { property: screen }] },
  ]
  return kinds[n % kinds.length] ?? {}
}

const screen = { key: 'last_screen', op: 'exists' }

/** Those of the demo's project. */
export async function allReady(firstRun: FirstRun): Promise<boolean> {
  const { data } = await ask<{ data: { status: string }[] }>(firstRun, '/segments?limit=100')
  const failed = data.find(({ status }) => status === 'failed')
  if (failed) throw new Error('a segment could not be made')
  return data.every(({ status }) => status === 'ready')
}
