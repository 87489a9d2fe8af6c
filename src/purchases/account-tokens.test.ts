import assert from 'node:assert/strict'
import test from 'node:test'
import { accountTokensOf, clientAccountToken, playAccountToken, standardAccountToken } from './account-tokens.ts'
import { defaultSettings } from './settings.ts'
import type { StoreApp } from './types.ts'

const namespace = '3f0a1c52-6d7e-4b8f-9a01-23456789abcd'
const app: Pick<StoreApp, 'accountTokenNamespace' | 'bundleId' | 'scope' | 'settings'> = {
  accountTokenNamespace: namespace,
  bundleId: 'com.example.app',
  scope: { scopeId: 1, workspaceId: 'ws_1', projectId: 'proj_1', environment: 'live' },
  settings: defaultSettings,
}

test('the rules give the documented values for user-1', () => {
  assert.match(playAccountToken('user-1'), /^c6c289e4[0-9a-f]{48}88bb541b$/)
  assert.equal(standardAccountToken(namespace, 'live', 'user-1'), 'ea0b6caf-85ee-5e10-9841-3726f04f4fc2')
  const tokens = accountTokensOf(app, 'appstore', 'user-1', ['https://edge.example.com'])
  assert.ok(tokens.includes('ea0b6caf-85ee-5e10-9841-3726f04f4fc2'))
  assert.ok(tokens.includes('6fb1ad86-0cd7-50ef-ae89-d540395a860a'), tokens.join())
})

test('base addresses count as clients write them: case of the host, default port, slashes and fragment do not', () => {
  const of = (url: string) => accountTokensOf(app, 'appstore', 'u', [url])[1]
  const same = ['https://edge.example.com', 'HTTPS://Edge.Example.com:443/', 'https://edge.example.com//#here']
  assert.equal(new Set(same.map(of)).size, 1)
  assert.notEqual(of('https://edge.example.com/v2'), of('https://edge.example.com'))
})

test('fixed words are taken as they are, unless the app names its own', () => {
  const words = ['production', 'staging', 'development', 'custom']
  const expected = words.map((word) => clientAccountToken('com.example.app', word, 'u'))
  assert.deepEqual(accountTokensOf(app, 'appstore', 'u', []).slice(1), expected)
  const own = { ...app, settings: { ...defaultSettings, clientTokenNamespaces: ['mine'] } }
  assert.deepEqual(accountTokensOf(own, 'appstore', 'u', ['https://edge.example.com']).slice(1), [
    clientAccountToken('com.example.app', 'mine', 'u'),
  ])
})

test('no two ids, environments or apps have a value in common', () => {
  const other = { ...app, bundleId: 'com.example.other', accountTokenNamespace: '3f0a1c52-6d7e-4b8f-9a01-23456789abce' }
  const test = { ...app, scope: { ...app.scope, environment: 'test' as const } }
  const all = [app, other].flatMap((each) =>
    ['u', 'U', 'u '].flatMap((id) => accountTokensOf(each, 'appstore', id, [])),
  )
  assert.equal(new Set(all).size, all.length)
  assert.notEqual(accountTokensOf(app, 'appstore', 'u', [])[0], accountTokensOf(test, 'appstore', 'u', [])[0])
})
