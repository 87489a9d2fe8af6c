import assert from 'node:assert/strict'
import test from 'node:test'
import { bucketOf, fnv1a32, isInNamespace, rangeAt, rangesOf } from './hash.ts'
import { choices, hashes, namespaces, ranges } from './hash-vectors.ts'

test('the hash is FNV-1a: its published values', () => {
  assert.equal(fnv1a32(''), 0x811c9dc5)
  assert.equal(fnv1a32('a'), 0xe40c292c)
  assert.equal(fnv1a32('foobar'), 0xbf9cf968)
})

test('the hash goes by code units, not by bytes', () => {
  // One unit of 0xe9, where UTF-8 has two bytes: (0x811c9dc5 ^ 0xe9) * 0x01000193 modulo 2^32.
  assert.equal(fnv1a32('é'), Math.imul(0x811c9dc5 ^ 0xe9, 0x01000193) >>> 0)
  assert.notEqual(fnv1a32('é'), fnv1a32('Ã©'))
})

test('buckets are as published, and none for an unknown version', () => {
  for (const [seed, value, version, bucket] of hashes) {
    assert.equal(bucketOf(seed, value, version), bucket, JSON.stringify([seed, value, version]))
  }
})

test('ranges are as published', () => {
  for (const [count, coverage, weights, expected] of ranges) {
    const rounded = rangesOf(count, weights, coverage).map((range) => range.map((edge) => Math.round(edge * 1e6) / 1e6))
    assert.deepEqual(rounded, expected, JSON.stringify([count, coverage, weights]))
  }
})

test('variants are chosen as published', () => {
  for (const [bucket, among, chosen] of choices)
    assert.equal(rangeAt(bucket, among), chosen, JSON.stringify([bucket, among]))
})

test('namespaces are as published', () => {
  for (const [value, id, start, end, inside] of namespaces) {
    assert.equal(isInNamespace(value, { id, start, end }), inside, JSON.stringify([value, id, start, end]))
  }
})
