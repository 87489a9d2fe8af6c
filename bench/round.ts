import type { Connection, ConnectionEvents } from './connection.ts'
import { Histogram } from './histogram.ts'
import type { GeneratorLine, Job, Outcome } from './job.ts'
import type { RequestSource } from './requests.ts'
import type { Answer } from './response.ts'

/** How many wrong answers are kept in words, and how much of each. */
const complaintsMax = 5
const complaintBytesMax = 500
/** Between two looks at the clock of a paced round. */
const paceMs = 1
/** Answers still missing so long after the end of a round count as wrong. */
const stragglersMs = 10_000

/**
 * One round: every connection sends its next request as soon as its answer has come (closed loop), or, when a rate is
 * asked for, as soon as it is due. A paced request's latency counts from the instant it was due, sent late or not.
 */
export class Round implements ConnectionEvents {
  readonly #job: Job
  readonly #source: RequestSource
  readonly #tell: (line: GeneratorLine) => void
  readonly #markers: Buffer[]
  readonly #denial: Buffer | undefined
  readonly #latencies = new Histogram()
  readonly #connections: Connection[] = []
  readonly #idle: Connection[] = []
  readonly #complaints: string[] = []
  readonly #ended = Promise.withResolvers<void>()
  readonly #answered = Promise.withResolvers<void>()
  #state: 'warming' | 'measuring' | 'ended' = 'warming'
  #startedAt = 0
  #measuringAt = 0
  #measuredMs = 0
  #cpuAtMeasuring = process.cpuUsage()
  #cpuMs = 0
  #underWay = 0
  #sent = 0
  #acknowledged = 0
  #denied = 0
  #wrong = 0
  #measured = 0
  #maxMs = 0

  constructor(job: Job, source: RequestSource, tell: (line: GeneratorLine) => void) {
    this.#job = job
    this.#source = source
    this.#tell = tell
    this.#markers = job.expect.markers.map((marker) => Buffer.from(marker))
    this.#denial = job.expect.denied === null ? undefined : Buffer.from(job.expect.denied)
  }

  add(connection: Connection): void {
    this.#connections.push(connection)
    this.#idle.push(connection)
  }

  /** Sends until time or count is up, then waits for the answers under way. */
  async run(): Promise<Outcome> {
    this.#startedAt = performance.now()
    const pacer = this.#job.ratePerS === null ? undefined : setInterval(() => this.#sendDue(), paceMs)
    const warm = setTimeout(() => this.#startMeasuring(), this.#job.warmupS * 1000)
    this.#sendDue()
    await this.#ended.promise
    clearInterval(pacer)
    clearTimeout(warm)
    const stragglers = setTimeout(() => this.#answered.resolve(), stragglersMs)
    await this.#answered.promise
    clearTimeout(stragglers)
    for (const connection of this.#connections) connection.close()
    return this.#outcome()
  }

  onAnswer(connection: Connection, answer: Answer): void {
    const now = performance.now()
    this.#underWay--
    const kind = this.#judge(connection, answer)
    if (kind === 'acknowledged') this.#acknowledged++
    else if (kind === 'denied') this.#denied++
    else this.#complain(`request ${connection.n} was answered ${shown(answer)}`)
    if (this.#state === 'measuring' && kind !== 'wrong') {
      this.#measured++
      this.#latencies.add(now - connection.since)
      this.#maxMs = Math.max(this.#maxMs, now - connection.since)
    }
    this.#next(connection, now)
  }

  onFailure(connection: Connection, error: Error): void {
    this.#complain(`connection ${connection.slot}, request ${connection.n}: ${error.message}`)
    // Nobody knows what became of its request, so the round can't be told right any more.
    this.#end()
    this.#answered.resolve()
  }

  #startMeasuring(): void {
    if (this.#state !== 'warming') return
    this.#tell({ phase: 'measuring' })
    this.#state = 'measuring'
    this.#cpuAtMeasuring = process.cpuUsage()
    this.#measuringAt = performance.now()
    setTimeout(() => this.#end(), this.#job.seconds * 1000)
  }

  #end(): void {
    if (this.#state === 'ended') return
    if (this.#state === 'measuring') {
      const cpu = process.cpuUsage(this.#cpuAtMeasuring)
      this.#cpuMs = (cpu.user + cpu.system) / 1000
      this.#measuredMs = performance.now() - this.#measuringAt
    }
    this.#state = 'ended'
    this.#tell({ phase: 'measured' })
    this.#ended.resolve()
    if (this.#underWay === 0) this.#answered.resolve()
  }

  #sendDue(): void {
    const now = performance.now()
    for (let left = this.#idle.length; left > 0; left--) {
      const connection = this.#idle.pop()
      if (connection) this.#next(connection, now)
    }
  }

  #next(connection: Connection, now: number): void {
    const { requestsMax, ratePerS } = this.#job
    if (this.#sent >= requestsMax) this.#end()
    if (this.#state === 'ended') {
      if (this.#underWay === 0) this.#answered.resolve()
      return
    }
    const dueAt = ratePerS === null ? now : this.#startedAt + (this.#sent / ratePerS) * 1000
    if (dueAt > now) {
      this.#idle.push(connection)
      return
    }
    connection.n = this.#sent++
    connection.since = dueAt
    this.#underWay++
    const request = this.#source(connection.n, connection.slot)
    connection.needle = request.needle
    connection.write(request.bytes)
  }

  #judge(connection: Connection, { status, bytes, bodyStart, end }: Answer): 'acknowledged' | 'denied' | 'wrong' {
    const { expect } = this.#job
    if (status !== expect.status) return 'wrong'
    if (expect.echoes && !within(bytes, connection.needle, 0, end)) return 'wrong'
    if (this.#markers.every((marker) => within(bytes, marker, bodyStart, end))) return 'acknowledged'
    return this.#denial && within(bytes, this.#denial, bodyStart, end) ? 'denied' : 'wrong'
  }

  #complain(words: string): void {
    this.#wrong++
    if (this.#complaints.length < complaintsMax) this.#complaints.push(words)
  }

  #outcome(): Outcome {
    const unanswered = this.#sent - this.#acknowledged - this.#denied - this.#wrong
    if (unanswered > 0 && this.#wrong === 0) this.#complaints.push(`${unanswered} requests were never answered`)
    return {
      sent: this.#sent,
      acknowledged: this.#acknowledged,
      denied: this.#denied,
      wrong: Math.max(this.#wrong, unanswered),
      complaints: this.#complaints,
      measured: this.#measured,
      measuredS: this.#measuredMs / 1000,
      p50Ms: this.#latencies.quantile(0.5),
      p99Ms: this.#latencies.quantile(0.99),
      maxMs: this.#maxMs,
      cpuMs: this.#cpuMs,
    }
  }
}

function within(bytes: Buffer, part: Buffer, from: number, end: number): boolean {
  const at = bytes.indexOf(part, from)
  return at >= 0 && at + part.length <= end
}

function shown({ status, bytes, bodyStart, end }: Answer): string {
  return `${status} ${bytes.toString('utf8', bodyStart, Math.min(end, bodyStart + complaintBytesMax))}`
}
