import assert from 'node:assert/strict'
import { test } from 'node:test'
import { checkPartition } from './manifest.ts'

test('bounds as PostgreSQL writes them are taken', () => {
  for (const bound of [
    `FOR VALUES FROM ('2026-11-20 00:00:00+00') TO ('2026-11-21 00:00:00+00')`,
    `FOR VALUES FROM ('1793491200000') TO ('1796083200000')`,
    'FOR VALUES FROM (MINVALUE) TO (12)',
    'FOR VALUES WITH (modulus 16, remainder 3)',
    `FOR VALUES IN ('a', 'b')`,
    'DEFAULT',
  ]) {
    checkPartition({ table: 'event', name: 'event_202611', bound })
  }
})

test('anything else never becomes part of a statement', () => {
  const bound = 'DEFAULT'
  for (const partition of [
    { table: 'event', name: 'event"; drop table event', bound },
    { table: 'event', name: '', bound },
    { table: 'event', name: 'x', bound: `FOR VALUES FROM ('a') TO ('b'); drop table event` },
    { table: 'event', name: 'x', bound: `FOR VALUES FROM ('a\\'') TO ('b')` },
    { table: 'event', name: 'x', bound: '' },
  ]) {
    assert.throws(() => checkPartition(partition), /damaged/)
  }
})
