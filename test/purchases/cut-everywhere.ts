import assert from 'node:assert/strict'
import { isConnectionLoss, Pool } from '../../src/db/pool.ts'
import { verifyLedger } from '../../src/entitlements/index.ts'
import { type CutProxy, cutProxy } from '../harness/cut-proxy.ts'
import type { TestDatabase } from '../harness/database.ts'

export interface Cutting<World> {
  prepare: () => Promise<World>
  /** By way of the address. Done once more it ends what was interrupted, and changes nothing that was done. */
  act: (world: World, url: string) => Promise<unknown>
  outcome: (world: World) => Promise<void>
  /** It tries again by itself, so that few losses are told of. */
  healsItself?: boolean
  /**
   * Of statements in a transaction only each so many. What it leaves behind is the same wherever it is lost; before and after it,
   * and at its end, every place counts.
   */
  stride?: number
}

/** Cuts the connection before and after statements, and tries again over a whole one. */
export async function cutEverywhere<World>(
  { pool, url }: TestDatabase,
  { prepare, act, outcome, healsItself = false, stride = 1 }: Cutting<World>,
): Promise<void> {
  await using counting = await cutProxy(url)
  const whole = await prepare()
  await act(whole, counting.url)
  await outcome(whole)
  assert.ok(counting.statements >= 10, `only ${counting.statements} statements`)
  assert.equal(counting.open.length, counting.statements)
  const cuts = placesOf(counting, stride)
  let failures = 0
  for (const { n, when } of cuts) {
    const world = await prepare()
    await using proxy: CutProxy = await cutProxy(url)
    proxy.cut(n, when)
    const error = await act(world, proxy.url).then(
      () => null,
      (reason: unknown) => reason,
    )
    if (error !== null) failures++
    assert.ok(error === null || isConnectionLoss(error), String(error))
    await act(world, url)
    await outcome(world)
  }
  assert.ok(failures > (healsItself ? 0 : cuts.length / 2), `${failures} of ${cuts.length} were noticed`)
  const found: unknown[] = []
  await verifyLedger(pool, { onFinding: (finding) => found.push(finding) })
  assert.deepEqual(found, [])
}

function placesOf({ open }: CutProxy, stride: number): { n: number; when: 'before' | 'after' }[] {
  return open.flatMap((isOpen, i) => {
    const wasOpen = i > 0 && open[i - 1] === true
    const isSkipped = wasOpen && isOpen && i % stride !== 0
    if (isSkipped) return []
    const before = { n: i + 1, when: 'before' } as const
    return stride > 1 && isOpen ? [before] : [before, { n: i + 1, when: 'after' } as const]
  })
}

/** A process of its own, as far as its connections go. */
export async function through<T>(url: string, work: (pool: Pool) => Promise<T>): Promise<T> {
  await using own = new Pool(url, { name: 'cut', max: 1 })
  return await work(own)
}
