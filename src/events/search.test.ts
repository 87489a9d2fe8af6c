import assert from 'node:assert/strict'
import test from 'node:test'
import fc from '../../test/harness/random.ts'
import { deadTriesMax } from '../kernel/limits.ts'
import { afterFailure, afterSuccess, isFound, type Search, sliceRows } from './search.ts'

/** Plays a lane over rows of which some fail; gives those set aside, those applied, and the slices it took. */
function play(poison: readonly boolean[]) {
  const played = { dead: [] as number[], applied: [] as number[], slices: 0 }
  let search: Search | null = null
  let at = 0
  while (at < poison.length) {
    played.slices++
    const rows = Array.from({ length: Math.min(sliceRows(search), poison.length - at) }, (_, n) => at + n)
    if (!rows.some((row) => poison[row])) {
      played.applied.push(...rows)
      at += rows.length
      search = afterSuccess(search, rows.length)
      continue
    }
    const [first, ...others] = rows.map(String)
    search = afterFailure(search, [first ?? '', ...others])
    if (!isFound(search)) continue
    played.dead.push(at++)
    search = null
  }
  return played
}

test('exactly the rows that fail are found, whatever their number and place', () => {
  fc.assert(
    fc.property(fc.array(fc.boolean(), { maxLength: 60 }), (poison) => {
      const { dead, applied } = play(poison)
      assert.deepEqual(
        dead,
        poison.flatMap((bad, i) => (bad ? [i] : [])),
      )
      assert.deepEqual(
        applied,
        poison.flatMap((bad, i) => (bad ? [] : [i])),
      )
    }),
  )
})

test('one row among 2,000 costs at most two dozen slices', () => {
  for (const at of [0, 1, 999, 1000, 1998, 1999]) {
    const { slices } = play(Array.from({ length: 2000 }, (_, i) => i === at))
    assert.ok(slices <= 24, `${at}: ${slices}`)
  }
})

test('tries are counted for one row: another one in its place begins anew', () => {
  let search: Search | null = null
  for (let n = 1; n < deadTriesMax; n++) search = afterFailure(search, ['a'])
  assert.ok(search !== null && !isFound(search))
  assert.ok(!isFound(afterFailure(search, ['b'])))
  assert.ok(isFound(afterFailure(search, ['a'])))
})
