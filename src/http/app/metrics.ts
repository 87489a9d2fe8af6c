import { timingSafeEqual } from 'node:crypto'
import { isIPv4 } from 'node:net'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { refuse } from '../../kernel/errors.ts'

export interface Metric {
  name: string
  help: string
  type: 'gauge' | 'counter' | 'histogram'
  /** Asked at every scrape; a metric that cannot be read is left out of it. */
  read: () => Promise<Sample[]> | Sample[]
}

export interface Sample {
  labels?: Record<string, string>
  value: number
  /** Added to the metric's name. */
  suffix?: string
}

export interface MetricsOptions {
  /** Callers from elsewhere than loopback need it; absent: only loopback may ask. */
  token: string | undefined
  metrics: Metric[]
}

/** Tells of an answer that did not go through the framework, and how many milliseconds it took. */
export type NoteAnswer = (route: string, status: number, ms: number) => void

interface Tally {
  requests: number
  seconds: number
}

/**
 * `GET /metrics`: Prometheus text. Requests are tallied by hand, a few nanoseconds each; the library that writes the text is
 * loaded with the first scrape.
 */
export function metrics(server: FastifyInstance, { token, metrics: others }: MetricsOptions): NoteAnswer {
  const tallies = new Map<string, Map<number, Tally>>()
  let registry: Promise<{ contentType: string; metrics: () => Promise<string> }> | undefined

  const note: NoteAnswer = (route, status, ms) => {
    const byStatus = tallies.get(route) ?? new Map<number, Tally>()
    tallies.set(route, byStatus)
    const tally = byStatus.get(status) ?? { requests: 0, seconds: 0 }
    byStatus.set(status, tally)
    tally.requests++
    tally.seconds += ms / 1000
  }
  server.addHook('onResponse', (request, reply, done) => {
    note(request.routeOptions.url ?? 'none', reply.statusCode, reply.elapsedTime)
    done()
  })

  server.get('/metrics', {
    schema: { hide: true },
    handler: async (request, reply) => {
      if (!mayAsk(request, token)) throw refuse('invalid_api_key', { message: 'Metrics need METRICS_TOKEN.' })
      registry ??= openRegistry(tallies, others)
      const { contentType, metrics: text } = await registry
      return reply.header('content-type', contentType).send(await text())
    },
  })
  return note
}

/** From this machine and not passed on by a proxy, or with the token. */
function mayAsk(request: FastifyRequest, token: string | undefined): boolean {
  const sent = /^Bearer +(\S+)$/i.exec(request.headers.authorization ?? '')?.[1]
  if (token !== undefined && sent !== undefined && isEqual(sent, token)) return true
  const { 'x-forwarded-for': passedFor, forwarded } = request.headers
  return isLoopback(request.ip) && passedFor === undefined && forwarded === undefined
}

function isEqual(sent: string, token: string): boolean {
  const [a, b] = [Buffer.from(sent), Buffer.from(token)]
  return a.length === b.length && timingSafeEqual(a, b)
}

function isLoopback(address: string): boolean {
  const plain = address.replace(/^::ffff:/, '')
  return plain === '::1' || (isIPv4(plain) && plain.startsWith('127.'))
}

async function openRegistry(tallies: Map<string, Map<number, Tally>>, others: Metric[]) {
  const { Counter, collectDefaultMetrics, Registry } = await import('prom-client')
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  const labelNames = ['route', 'status'] as const
  const counters = [
    { name: 'turnpike_requests_total', help: 'Requests answered', of: (tally: Tally) => tally.requests },
    {
      name: 'turnpike_request_seconds_total',
      help: 'Time from the request to its answer',
      of: (tally: Tally) => tally.seconds,
    },
  ]
  for (const { name, help, of } of counters) {
    new Counter({
      name,
      help,
      labelNames,
      registers: [registry],
      collect() {
        this.reset()
        for (const [route, byStatus] of tallies) {
          for (const [status, tally] of byStatus) this.inc({ route, status }, of(tally))
        }
      },
    })
  }
  for (const metric of others)
    registry.registerMetric(collected(metric) as unknown as Parameters<typeof registry.registerMetric>[0]) // asks for get() only
  return { contentType: registry.contentType, metrics: () => registry.metrics() }
}

/** In the shape that the registry writes down. */
function collected({ name, help, type, read }: Metric) {
  return {
    name,
    async get() {
      const samples = await (async () => read())().catch((): Sample[] => [])
      const values = samples.map(({ labels = {}, value, suffix = '' }) => ({
        metricName: name + suffix,
        labels,
        value,
      }))
      return { name, help, type, values, aggregator: 'sum' }
    },
  }
}
