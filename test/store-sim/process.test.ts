import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import test from 'node:test'
import type { Body } from './sim.ts'

/** The real command in a process of its own, until it says its address. */
async function run(args: string[]) {
  const child = spawn(process.execPath, ['store-sim/main.ts', ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
  let said = ''
  const ended = once(child, 'exit')
  const url = await new Promise<string | undefined>((resolve) => {
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      said += text
      const [address] = /http:\S+/.exec(said) ?? []
      if (address !== undefined) resolve(address)
    })
    void ended.then(() => resolve(undefined))
  })
  return { child, url, ended }
}

test('the process says where it is, keeps its world through SIGTERM, and lets nobody else read it', async () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'store-sim-'))
  try {
    const first = await run(['--port', '0', '--seed', 'a', '--data-dir', dataDir])
    assert.ok(first.url)
    const body = JSON.stringify({ account: 'ann', productId: 'com.example.demo.lifetime' })
    const bought = await fetch(`${first.url}/sim/appstore/purchases`, { method: 'POST', body })
    const held: Body = await bought.json()
    first.child.kill('SIGTERM')
    assert.deepEqual(await first.ended, [0, null])
    assert.equal(statSync(join(dataDir, 'store-sim/snapshot.json')).mode & 0o777, 0o600)
    const second = await run(['--port', '0', '--data-dir', dataDir])
    assert.ok(second.url)
    const state: Body = await (await fetch(`${second.url}/sim/state`)).json()
    assert.equal(state.apps[0].lineages[0].id, held.id)
    second.child.kill('SIGTERM')
    assert.deepEqual(await second.ended, [0, null])
  } finally {
    rmSync(dataDir, { recursive: true })
  }
})

test('a port that is none ends it', async () => {
  const { url, ended } = await run(['--port', 'many'])
  assert.equal(url, undefined)
  assert.deepEqual(await ended, [1, null])
})
