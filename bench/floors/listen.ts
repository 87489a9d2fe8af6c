import type { FastifyInstance } from 'fastify'

/** Listens on a free loopback port, tells it to the parent on standard output, and stops with SIGTERM. */
export async function listen(app: Pick<FastifyInstance, 'listen' | 'server'>): Promise<void> {
  await app.listen({ host: '127.0.0.1', port: 0 })
  const address = app.server.address()
  process.stdout.write(`${JSON.stringify({ port: typeof address === 'object' ? address?.port : undefined })}\n`)
  process.once('SIGTERM', () => process.exit(0))
}
