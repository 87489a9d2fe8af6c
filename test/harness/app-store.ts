import { generateKeyPairSync } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type Pki, signApple } from './apple-pki.ts'

export interface AppStore extends AsyncDisposable {
  url: string
  /** What it answers a path: status and body, or nothing at all. Unknown paths are 404 4040010. */
  answers: Map<string, { status: number; body: unknown; headers?: Record<string, string> } | 'hang'>
  /** Paths, in order. */
  asked: string[]
  key: { issuer_id: string; key_id: string; private_key: string }
  /** Tells of a subscription as the store would. */
  tell: (transaction: Record<string, unknown>, status: number, renewal?: Record<string, unknown>) => void
  tellOnce: (transaction: Record<string, unknown>) => void
}

/** A small App Store Server API of one test: what it says is set by hand. */
export async function startAppStore(pki: Pki): Promise<AppStore> {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })
  const answers: AppStore['answers'] = new Map()
  const asked: string[] = []
  const server = createServer((request: IncomingMessage, response) => {
    const path = request.url ?? ''
    asked.push(path)
    const answer = answers.get(path) ?? { status: 404, body: { errorCode: 4040010, errorMessage: 'not found' } }
    if (answer === 'hang') return
    response.writeHead(answer.status, { 'content-type': 'application/json', ...answer.headers })
    response.end(typeof answer.body === 'string' ? answer.body : JSON.stringify(answer.body))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo // a TCP address after listen
  return {
    url: `http://127.0.0.1:${port}`,
    answers,
    asked,
    key: {
      issuer_id: '57246542-96fe-1a63-e053-0824d011072a',
      key_id: '2X9R4HXF34',
      private_key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString(),
    },
    tell(transaction, status, renewal) {
      const { originalTransactionId } = transaction
      const signedRenewalInfo =
        renewal === undefined
          ? {}
          : {
              signedRenewalInfo: signApple(pki, {
                ...{ originalTransactionId, autoRenewProductId: transaction.productId, autoRenewStatus: 1 },
                ...{
                  productId: transaction.productId,
                  environment: transaction.environment,
                  signedDate: Date.now() - 1000,
                },
                ...renewal,
              }),
            }
      const last = {
        originalTransactionId,
        status,
        signedTransactionInfo: signApple(pki, transaction),
        ...signedRenewalInfo,
      }
      answers.set(`/inApps/v1/subscriptions/${String(originalTransactionId)}`, {
        status: 200,
        body: { environment: 'Sandbox', bundleId: 'com.example.app', data: [{ lastTransactions: [last] }] },
      })
    },
    tellOnce(transaction) {
      answers.set(`/inApps/v1/transactions/${String(transaction.transactionId)}`, {
        status: 200,
        body: { signedTransactionInfo: signApple(pki, transaction) },
      })
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}
