import assert from 'node:assert/strict'
import test from 'node:test'
import type { Scope } from '../tenancy/index.ts'
import { customerIdFor, parseCustomerId, wireCustomerId } from './customer-id.ts'

const scope: Scope = { scopeId: 1, workspaceId: 'ws_1', projectId: 'proj_1', environment: 'live' }

test('the birth id is fixed for ever by project, environment, distinct id and generation', () => {
  assert.equal(customerIdFor(scope, 'user-1', 0), '7d2c5bbf-27fd-5361-ab83-154fe6079ef8')
  assert.equal(
    customerIdFor({ ...scope, scopeId: 2, workspaceId: 'ws_2' }, 'user-1', 0),
    customerIdFor(scope, 'user-1', 0),
  )
  const others = [
    customerIdFor({ ...scope, projectId: 'proj_2' }, 'user-1', 0),
    customerIdFor({ ...scope, environment: 'test' }, 'user-1', 0),
    customerIdFor(scope, 'user-2', 0),
    customerIdFor(scope, 'User-1', 0),
    customerIdFor(scope, 'user-1', 1),
  ]
  assert.equal(new Set([...others, customerIdFor(scope, 'user-1', 0)]).size, 6)
})

test('an id travels as cus_ and the UUID, in either case', () => {
  const id = customerIdFor(scope, 'user-1', 0)
  assert.equal(parseCustomerId(wireCustomerId(id)), id)
  assert.equal(parseCustomerId(`cus_${id.toUpperCase()}`), id)
})

test('what is no customer id reads as null', () => {
  const id = customerIdFor(scope, 'user-1', 0)
  for (const text of [
    '',
    'cus_',
    id,
    `cus_${id}0`,
    `cus_ ${id}`,
    `CUS_${id}`,
    'cus_00000000-0000-0000-0000-000000000000',
  ]) {
    assert.equal(parseCustomerId(text), null, text)
  }
})
