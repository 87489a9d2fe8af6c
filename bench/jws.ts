import assert from 'node:assert/strict'
import { trustSet } from '../src/purchases/apple/chain.ts'
import { verifyAppleJws } from '../src/purchases/apple/jws.ts'
import { aTransaction, signApple, testPki } from '../test/harness/apple-pki.ts'

/**
 * `npm run bench:jws`: verifications of signed transactions by one core, with the chain known, and once with every chain new.
 * Every string is another one.
 */
const seconds = 5
const texts = 5000
const pki = await testPki()
const strings = Array.from({ length: texts }, () => signApple(pki, aTransaction()))
const nobody: ReadonlySet<string> = new Set()
const wallNow = Date.now()

async function perSecond(forget: boolean): Promise<number> {
  const trust = trustSet([pki.root.certificate])
  const end = performance.now() + seconds * 1000
  const before = process.cpuUsage()
  let verified = 0
  while (performance.now() < end) {
    if (forget) trust.chains.clear()
    const verdict = await verifyAppleJws(strings[verified % texts] ?? '', 'transaction', {
      ...{ trust, now: wallNow, wallNow, revoked: nobody },
    })
    assert.ok(verdict.ok)
    verified++
  }
  // Time of the processor, whatever else the machine does.
  const { user, system } = process.cpuUsage(before)
  return Math.round((verified * 1e6) / (user + system))
}

await perSecond(false)
const [known, fresh] = [await perSecond(false), await perSecond(true)]
process.stdout.write(`known chain: ${known} verifications/s (aim: 2,500 a core)\nnew chain: ${fresh}/s\n`)
process.exitCode = known >= 2500 ? 0 : 1
