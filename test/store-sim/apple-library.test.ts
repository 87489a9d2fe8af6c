import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import test from 'node:test'
import {
  Environment,
  SignedDataVerifier,
  VerificationException,
  VerificationStatus,
} from '@apple/app-store-server-library'
import { wrongSignings } from '../../store-sim/pki/sign.ts'
import { type Body, bundle, openReceiver, openSim, type Simulator } from './sim.ts'

const monthly = 'com.example.demo.pro_monthly'

/** Offline: its online mode compares certificates with today. */
function verifierOf({ config }: Simulator, bundleId = bundle): SignedDataVerifier {
  const roots = config.appstore.roots.map((pem: string) => new X509Certificate(pem).raw)
  return new SignedDataVerifier(roots, false, Environment.SANDBOX, bundleId)
}

async function statusOf(work: Promise<unknown>): Promise<VerificationStatus> {
  const refused = await work.then(
    () => undefined,
    (error: unknown) => error,
  )
  assert.ok(refused instanceof VerificationException, 'it was refused')
  return refused.status
}

test('Apple’s own library takes what the simulator signs: transactions, renewal infos, app transactions', async () => {
  await using sim = await openSim()
  const held = await sim.buyApple({ productId: monthly })
  const verifier = verifierOf(sim)
  const transaction = await verifier.verifyAndDecodeTransaction(held.signedTransaction)
  assert.equal(transaction.transactionId, held.transactionId)
  assert.equal(transaction.type, 'Auto-Renewable Subscription')
  const renewal = await verifier.verifyAndDecodeRenewalInfo(held.signedRenewalInfo)
  assert.equal(renewal.originalTransactionId, held.originalTransactionId)
  const app = await verifier.verifyAndDecodeAppTransaction(held.signedAppTransaction)
  assert.equal(app.appTransactionId, held.appTransactionId)
})

test('it takes notifications and what is nested in them', async () => {
  await using sim = await openSim()
  await using receiver = await openReceiver()
  await sim.control('PUT', '/sim/targets', { store: 'appstore', app: bundle, url: receiver.url })
  const held = await sim.buyApple({ productId: monthly })
  const verifier = verifierOf(sim)
  const { notificationType, subtype, data }: Body = await verifier.verifyAndDecodeNotification(
    receiver.received[0]?.body.signedPayload,
  )
  assert.deepEqual([notificationType, subtype, data.status], ['SUBSCRIBED', 'INITIAL_BUY', 1])
  const nested = await verifier.verifyAndDecodeTransaction(data.signedTransactionInfo)
  assert.equal(nested.transactionId, held.transactionId)
})

test('it refuses what is signed wrongly on request, and another app’s', async () => {
  await using sim = await openSim()
  const held = await sim.buyApple({ productId: monthly })
  const verifier = verifierOf(sim)
  for (const signing of wrongSignings) {
    const { signedTransaction } = await sim.verb(held, 're-sign', { signing })
    assert.notEqual(
      await statusOf(verifier.verifyAndDecodeTransaction(signedTransaction)),
      VerificationStatus.OK,
      signing,
    )
  }
  const other = verifierOf(sim, 'com.example.other')
  assert.equal(
    await statusOf(other.verifyAndDecodeTransaction(held.signedTransaction)),
    VerificationStatus.INVALID_APP_IDENTIFIER,
  )
})

test('it takes the chain after the leaf was rotated, and years later, when it is replaced by itself', async () => {
  await using sim = await openSim()
  const held = await sim.buyApple({ productId: monthly })
  const verifier = verifierOf(sim)
  await sim.control('POST', '/sim/certificates/rotate')
  const rotated = await sim.verb(held, 're-sign')
  await verifier.verifyAndDecodeTransaction(rotated.signedTransaction)
  await sim.move('P3Y')
  const later = await sim.verb(held, 're-sign')
  const { signedDate } = await verifier.verifyAndDecodeTransaction(later.signedTransaction)
  assert.equal(signedDate, Date.parse('2030-01-15T12:00:00Z'))
})
