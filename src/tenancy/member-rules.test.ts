import assert from 'node:assert/strict'
import test from 'node:test'
import fc from '../../test/harness/random.ts'
import { decideRemoval, decideRole } from './member-rules.ts'
import type { Role } from './types.ts'

const roles: Role[] = ['owner', 'admin', 'member']
const role = fc.constantFrom(...roles)

test('whoever may do what to whom: the whole table of roles', () => {
  const may = (actor: Role, from: Role | null, to: Role) => decideRole({ actor, from, to, owners: 2 }).allowed
  const table = roles.flatMap((actor) =>
    [null, ...roles].flatMap((from) =>
      roles.filter((to) => may(actor, from, to)).map((to) => `${actor}: ${from} > ${to}`),
    ),
  )
  assert.deepEqual(table, [
    'owner: null > owner',
    'owner: null > admin',
    'owner: null > member',
    'owner: owner > owner',
    'owner: owner > admin',
    'owner: owner > member',
    'owner: admin > owner',
    'owner: admin > admin',
    'owner: admin > member',
    'owner: member > owner',
    'owner: member > admin',
    'owner: member > member',
    'admin: null > admin',
    'admin: null > member',
    'admin: admin > admin',
    'admin: admin > member',
    'admin: member > admin',
    'admin: member > member',
  ])
})

test('whoever may remove whom, and that everybody may leave', () => {
  const table = roles.flatMap((actor) =>
    roles
      .filter((member) => decideRemoval({ actor, member, self: false, owners: 2 }).allowed)
      .map((member) => `${actor} removes ${member}`),
  )
  assert.deepEqual(table, [
    'owner removes owner',
    'owner removes admin',
    'owner removes member',
    'admin removes admin',
    'admin removes member',
  ])
  for (const actor of roles) {
    assert.equal(decideRemoval({ actor, member: actor, self: true, owners: 2 }).allowed, true)
  }
})

test('no sequence of changes leaves a workspace without an owner', () => {
  const step = fc.record({ actor: fc.nat(4), target: fc.nat(4), to: fc.option(role, { nil: null }) })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      const members: (Role | undefined)[] = ['owner', 'admin', 'member', 'owner', 'admin']
      for (const { actor, target, to } of steps) {
        const [by, of] = [members[actor], members[target]]
        if (!by || !of) continue
        const owners = members.filter((member) => member === 'owner').length
        const verdict = to
          ? decideRole({ actor: by, from: of, to, owners })
          : decideRemoval({ actor: by, member: of, self: actor === target, owners })
        if (verdict.allowed) members[target] = to ?? undefined
        assert.ok(members.includes('owner'))
      }
    }),
  )
})
