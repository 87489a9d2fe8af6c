import assert from 'node:assert/strict'
import test from 'node:test'
import { loggedEvent } from '../../test/harness/logged-event.ts'
import type { EventPayload, Warning } from '../events/index.ts'
import { directivesOf, hasDirectives } from './directives.ts'

const read = (payload: Partial<EventPayload>) => {
  const warnings: Warning[] = []
  return { directives: directivesOf(loggedEvent('u', payload).payload, warnings), warnings }
}

test('directives are read in properties and at the top level, which wins per key', () => {
  const { directives } = read({
    properties: { $set: { a: 1, b: 1 }, $set_once: { c: 1 }, $increment: { d: 1 }, $unset: ['e'] },
    $set: { a: 2 },
    $set_once: { c: 2 },
    $increment: { d: 2, x: 1 },
    $unset: ['f'],
  })
  assert.deepEqual(directives, {
    set: new Map([
      ['a', 2],
      ['b', 1],
    ]),
    setOnce: new Map([['c', 2]]),
    increment: new Map([
      ['d', 2],
      ['x', 1],
    ]),
    unset: new Set(['e', 'f']),
  })
})

test('an event without directives has none; null counts as absent', () => {
  assert.equal(read({}).directives, null)
  assert.equal(read({ properties: { set: { a: 1 }, plan: 'pro', $set: null, $unset: null } }).directives, null)
  assert.equal(hasDirectives(loggedEvent('u', { properties: { $unset: [] } }).payload), true)
})

test('entries of $unset that are no text are ignored with a warning', () => {
  const { directives, warnings } = read({ properties: { $unset: ['a', 1, null, ['b']] } })
  assert.deepEqual(directives?.unset, new Set(['a']))
  assert.deepEqual(
    warnings.map(({ code }) => code),
    ['unset_entry_ignored', 'unset_entry_ignored', 'unset_entry_ignored'],
  )
})

test('a property named __proto__ is read as a property', () => {
  const properties = JSON.parse('{"$set":{"__proto__":{"x":1}}}') as EventPayload['properties']
  assert.deepEqual([...(read({ properties }).directives?.set ?? [])], [['__proto__', { x: 1 }]])
})
