/**
 * Floor (a): what Fastify costs when nothing is done. Every POST is parsed and sent back, and so is the query of a GET.
 * `/batch` is the floor of batches: gunzip, JSON.parse, COPY into a table with no index, COMMIT.
 */
import { promisify } from 'node:util'
import { gunzip } from 'node:zlib'
import Fastify from 'fastify'
import pg from 'pg'
import { copyIn, copyLine } from './copy.ts'
import { listen } from './listen.ts'

const batchBytesMax = 16 * 1024 * 1024
const connections = 4
const inflate = promisify(gunzip)

interface Item {
  uuid: string
  distinct_id: string
}

const pool = new pg.Pool({ connectionString: process.argv[2] ?? '', max: connections })
await pool.query(
  `create table if not exists event_log (
     seq bigint generated always as identity, logged_at timestamptz not null default clock_timestamp(),
     uuid uuid not null, distinct_id text not null, payload text not null)`,
)

const app = Fastify()
for (const path of ['/event', '/entitled', '/feature/consume', '/profile']) {
  app.post(path, (request, reply) => reply.send(request.body))
}

// A read has no body: its query is parsed and sent back.
app.get('/v1/customers', (request, reply) => reply.send(request.query))

await app.register(async (batches) => {
  batches.removeAllContentTypeParsers()
  batches.addContentTypeParser(
    'application/json',
    { parseAs: 'buffer', bodyLimit: batchBytesMax },
    async (_: unknown, body: Buffer) => JSON.parse((await inflate(body)).toString()),
  )
  batches.post<{ Body: { batch: Item[] } }>('/batch', async (request) => {
    const { batch } = request.body
    const lines = batch.map((item) => copyLine([item.uuid, item.distinct_id, JSON.stringify(item)])).join('')
    const client = await pool.connect()
    try {
      await copyIn(client, 'copy event_log (uuid, distinct_id, payload) from stdin', lines)
    } finally {
      client.release()
    }
    return { status: 'success', accepted: batch.length }
  })
})

await listen(app)
