import assert from 'node:assert/strict'
import test from 'node:test'
import { distinctIdsMax } from '../kernel/limits.ts'
import { type MergeQuestion, namesOnePerson, type Party, ruleMerge } from './identity.ts'

const anonymous: Party = { customerId: 'a', identified: false, aliasCount: 1 }
const known: Party = { customerId: 'u', identified: true, aliasCount: 1 }
const plain: MergeQuestion = {
  sourceId: 'anon-1',
  targetId: 'user-1',
  source: null,
  target: null,
  sourceDeleted: false,
}

const rulings: [string, Partial<MergeQuestion>, string][] = [
  ['neither exists', {}, 'birth'],
  ['only the target exists', { target: known }, 'attach_source'],
  ['only the target exists, not identified yet', { target: { ...known, identified: false } }, 'attach_source'],
  ['only the source exists', { source: anonymous }, 'attach_target'],
  ['both exist', { source: anonymous, target: known }, 'join'],
  ['both exist, neither identified', { source: anonymous, target: { ...known, identified: false } }, 'join'],
  ['already one customer', { source: known, target: known }, 'same'],
  ['equal ids', { sourceId: 'user-1' }, 'same_id'],
  ['source deleted', { sourceDeleted: true }, 'source_deleted'],
  ['source deleted and still named', { sourceDeleted: true, source: anonymous, target: known }, 'source_deleted'],
  [
    'source identified, target exists',
    { source: { ...anonymous, identified: true }, target: known },
    'source_identified',
  ],
  ['source identified, target never seen', { source: { ...anonymous, identified: true } }, 'source_identified'],
  ['source illegal', { sourceId: 'undefined' }, 'illegal_id'],
  ['target illegal', { targetId: 'email' }, 'illegal_id'],
  [
    'force: both exist and are identified',
    { force: true, source: { ...anonymous, identified: true }, target: known },
    'join',
  ],
  ['force: the source is not there', { force: true, target: known }, 'source_missing'],
  ['force: equal ids', { force: true, sourceId: 'user-1' }, 'same_id'],
  ['force: an illegal id', { force: true, sourceId: 'undefined' }, 'illegal_id'],
  ['force: source deleted', { force: true, sourceDeleted: true }, 'source_deleted'],
  ['force: no room', { force: true, source: anonymous, target: { ...known, aliasCount: distinctIdsMax } }, 'id_cap'],
  ['room for one more id', { target: { ...known, aliasCount: distinctIdsMax - 1 } }, 'attach_source'],
  ['no room for one more id', { target: { ...known, aliasCount: distinctIdsMax } }, 'id_cap'],
  ['no room in the source', { source: { ...anonymous, aliasCount: distinctIdsMax } }, 'id_cap'],
  [
    'no room for both',
    {
      source: { ...anonymous, aliasCount: distinctIdsMax / 2 },
      target: { ...known, aliasCount: distinctIdsMax / 2 + 1 },
    },
    'id_cap',
  ],
]

for (const [title, question, expected] of rulings) {
  test(`merge: ${title}: ${expected}`, () => {
    const ruling = ruleMerge({ ...plain, ...question })
    assert.equal(ruling.kind === 'refused' ? ruling.reason : ruling.kind, expected)
    assert.equal(ruling.kind === 'refused' ? ruling.identifies : true, !['same_id', 'illegal_id'].includes(expected))
  })
}

test('the first rule that holds gives the reason', () => {
  const everything: MergeQuestion = {
    sourceId: 'null',
    targetId: 'null',
    source: { ...anonymous, identified: true, aliasCount: distinctIdsMax },
    target: known,
    sourceDeleted: true,
  }
  const reasons: string[] = []
  const asking = (changes: Partial<MergeQuestion>) => {
    Object.assign(everything, changes)
    const ruling = ruleMerge(everything)
    reasons.push(ruling.kind === 'refused' ? ruling.reason : ruling.kind)
  }
  asking({})
  asking({ targetId: 'user-1' })
  asking({ sourceId: 'anon-1' })
  asking({ sourceDeleted: false })
  asking({ source: { ...anonymous, aliasCount: distinctIdsMax } })
  asking({ source: anonymous })
  assert.deepEqual(reasons, ['same_id', 'illegal_id', 'source_deleted', 'source_identified', 'id_cap', 'join'])
})

test('an id that names a class of users never takes part in a merge', () => {
  const classes = [
    ...['', 'anonymous', 'guest', 'distinctid', 'distinct_id', 'id', 'not_authenticated', 'email', 'undefined', 'null'],
    ...['nan', 'none', 'true', 'false', '0', '[object object]', 'anonymous-user', 'backend', 'system', 'user'],
    '00000000-0000-0000-0000-000000000000',
  ]
  for (const name of classes) {
    for (const spelling of [
      name,
      name.toUpperCase(),
      ` ${name}\t`,
      `"${name}"`,
      `'${name}'`,
      ` "${name}" `,
      `" ${name} "`,
    ]) {
      assert.equal(namesOnePerson(spelling), false, JSON.stringify(spelling))
    }
  }
})

test('neither does what is no text, too long or not storable', () => {
  for (const id of [1, 0, true, [], {}, null, 'x'.repeat(257), '🙂'.repeat(257), 'a\0b', 'a\ud800']) {
    assert.equal(namesOnePerson(id), false, JSON.stringify(id))
  }
})

test('ordinary ids do, whatever they contain', () => {
  for (const id of [
    '1',
    '00',
    'users',
    'id-1',
    '""x""',
    'user@example.com',
    '🙂'.repeat(256),
    '__proto__',
    "o'neil",
    '"',
  ]) {
    assert.equal(namesOnePerson(id), true, JSON.stringify(id))
  }
})
