/**
 * The load generator, in a process of its own: takes one Job as JSON on standard input, writes GeneratorLines.
 * Raw HTTP/1.1 over keep-alive sockets, requests stamped into ready bytes, every answer checked.
 */
import { text } from 'node:stream/consumers'
import { Connection, type ConnectionEvents } from './connection.ts'
import type { GeneratorLine, Job } from './job.ts'
import { profileRequests, requestSource } from './requests.ts'
import { headerOf } from './response.ts'
import { Round } from './round.ts'

const job = JSON.parse(await text(process.stdin)) as Job // written by run.ts, which has the same type
const etags = job.request.kind === 'profile' && job.request.etag === 'learn' ? await learnEtags(job, job.request) : []
const source = await requestSource(job.request, job.connections, etags)
const round = new Round(job, source, tell)
for (let slot = 0; slot < job.connections; slot++) round.add(await Connection.open(job.port, slot, round))
tell({ phase: 'ready' })
const outcome = await round.run()
tell({ phase: 'done', outcome })

function tell(line: GeneratorLine): void {
  process.stdout.write(`${JSON.stringify(line)}\n`)
}

/** Asks for every customer's profile once; `etags[customer]` is what the server gave. */
async function learnEtags(job: Job, profile: { apiKey: string; customers: number }): Promise<string[]> {
  const requests = profileRequests(profile)
  const etags: string[] = []
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  let next = 0
  const send = (connection: Connection) => {
    const request = requests[next]
    if (request) {
      connection.n = next++
      connection.write(request)
    } else {
      connection.close()
      if (Object.keys(etags).length === requests.length) resolve()
    }
  }
  const events: ConnectionEvents = {
    onAnswer: (connection, answer) => {
      const etag = headerOf(answer, 'etag')
      if (answer.status !== 200 || etag === undefined)
        reject(new Error(`a profile answered ${answer.status}, ETag ${etag}`))
      else etags[connection.n] = etag
      send(connection)
    },
    onFailure: (_, error) => reject(error),
  }
  const connections = await Promise.all(
    Array.from({ length: job.connections }, (_, slot) => Connection.open(job.port, slot, events)),
  )
  connections.forEach(send)
  await promise
  return etags
}
