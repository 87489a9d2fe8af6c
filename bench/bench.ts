import type { Pool } from '../src/db/pool.ts'
import { systemClock } from '../src/kernel/clock.ts'
import { contestedJob, itemsOf, jobOf, type ServerName, serverNames } from './cases.ts'
import { checkStored, type Done, isEvents, isUsage } from './check.ts'
import { type Processes, treeMs } from './cpu.ts'
import { type CaseFigures, type Figures, medianOf, type PacedFigures, rounded } from './figures.ts'
import { idPrefix } from './ids.ts'
import type { Job } from './job.ts'
import { Lane, type LaneRound, laneFigures } from './lane.ts'
import { type Measured, measure } from './measure.ts'
import type { CaseName, Options } from './options.ts'
import { contestedUnits } from './seed.ts'
import type { Floor, Service } from './service.ts'

/** The load at which events have to be processed promptly. */
const eventsPerSPaced = 3000

interface Parts {
  options: Options
  apiKey: string
  scopeId: number
  service: Service
  echo: Floor
  naive: Floor
  turnpikeDb: Pool
  naiveDb: Pool
  say: (words: string) => void
}

/** Runs the cases and remembers what has to be found in the databases afterwards. */
export class Bench {
  readonly #parts: Parts
  readonly #lane: Lane
  readonly #done: Done[] = []
  #rounds = 0

  constructor(parts: Parts) {
    this.#parts = parts
    this.#lane = new Lane(parts.turnpikeDb, parts.scopeId)
  }

  /** All rounds of one case, the servers taking turns. Throws when an answer was wrong. */
  async case(name: CaseName): Promise<CaseFigures> {
    const { options, say } = this.#parts
    const figures: Record<ServerName, Figures[]> = { echo: [], naive: [], turnpike: [] }
    const lane: LaneRound[] = []
    for (let round = 0; round < options.rounds; round++) {
      for (let turn = 0; turn < serverNames.length; turn++) {
        // Another server begins each time, so that none always follows the same one.
        const server = serverNames[(round + turn) % serverNames.length] ?? 'turnpike'
        const { measured, drained } = await this.#round(name, server)
        figures[server].push(this.#figuresOf(server, measured))
        if (drained) lane.push(drained)
        say(`${name} ${server}: ${Math.round(figures[server].at(-1)?.rps ?? 0)} requests/s`)
      }
    }
    const [echo, naive, turnpike] = [medianOf(figures.echo), medianOf(figures.naive), medianOf(figures.turnpike)]
    if (name === 'consume_hot') await this.#contest()
    return {
      name,
      ...turnpike,
      ratio_echo: rounded(turnpike.rps / echo.rps),
      ratio_naive: rounded(turnpike.rps / naive.rps),
      errors: 0,
      ...(name === 'batch' && { events_per_s: Math.round(turnpike.rps * itemsOf(name)) }),
      ...(lane.length > 0 && { lane: laneFigures(lane) }),
      paced: await this.#paced(name, turnpike.rps),
      echo,
      naive,
      rounds: {
        turnpike: figures.turnpike.map(({ rps }) => rounded(rps)),
        echo: figures.echo.map(({ rps }) => rounded(rps)),
        naive: figures.naive.map(({ rps }) => rounded(rps)),
      },
    }
  }

  /** What is stored against what was acknowledged; empty when they agree. */
  async check(): Promise<string[]> {
    const { turnpikeDb, naiveDb, scopeId, say } = this.#parts
    say('comparing what is stored with what was acknowledged')
    await this.#lane.drained()
    return checkStored(this.#done, { turnpike: turnpikeDb, naive: naiveDb }, scopeId)
  }

  async #round(name: CaseName, server: ServerName): Promise<{ measured: Measured; drained: LaneRound | undefined }> {
    const { options, apiKey, service } = this.#parts
    const call = { server, apiKey, secretKey: service.firstRun.secret_key, idPrefix: this.#nextPrefix() }
    const measured = await this.#run(name, server, call.idPrefix, jobOf(name, call, options))
    if (server !== 'turnpike' || !isEvents(name)) return { measured, drained: undefined }
    const drained = await this.#lane.follow(
      measured,
      itemsOf(name),
      (processes) => this.#cpuOf('turnpike', processes).all,
    )
    return { measured, drained }
  }

  /** Half of what it can do at most, where waiting says more about the work than about the queue. */
  async #paced(name: CaseName, rps: number): Promise<PacedFigures> {
    const { options, apiKey, service } = this.#parts
    const ratePerS = name === 'event' ? Math.min(rps / 2, eventsPerSPaced) : rps / 2
    const call = {
      server: 'turnpike',
      apiKey,
      secretKey: service.firstRun.secret_key,
      idPrefix: this.#nextPrefix(),
    } as const
    const ages: number[] = []
    const look = isEvents(name) ? async () => void ages.push(await this.#lane.ageMs()) : undefined
    const job = { ...jobOf(name, call, options), ratePerS }
    const { outcome } = await this.#run(name, 'turnpike', call.idPrefix, job, look)
    await this.#lane.drained()
    return {
      rps: rounded(outcome.measured / outcome.measuredS),
      p50_ms: rounded(outcome.p50Ms),
      p99_ms: rounded(outcome.p99Ms),
      ...(look && { lag_p99_ms: rounded(ages.toSorted((a, b) => a - b)[Math.floor(ages.length * 0.99)] ?? 0) }),
    }
  }

  /** Twice as many spends as there are units: exactly the units are accepted. */
  async #contest(): Promise<void> {
    const { options, apiKey, service } = this.#parts
    const call = {
      server: 'turnpike',
      apiKey,
      secretKey: service.firstRun.secret_key,
      idPrefix: this.#nextPrefix(),
    } as const
    const { outcome } = await this.#run('consume_hot', 'turnpike', call.idPrefix, contestedJob(call, options))
    if (outcome.acknowledged !== contestedUnits || outcome.denied !== contestedUnits) {
      throw new Error(
        `${contestedUnits} units were contested by ${2 * contestedUnits} spends: ` +
          `${outcome.acknowledged} accepted, ${outcome.denied} denied`,
      )
    }
  }

  /** One job against one server. Throws, with the first wrong answers, when there was one. */
  async #run(
    name: CaseName,
    server: ServerName,
    prefix: string,
    job: Omit<Job, 'port'>,
    look?: () => Promise<void>,
  ): Promise<Measured> {
    const { service, echo, naive } = this.#parts
    const { port } = { turnpike: service, echo, naive }[server]
    const measured = await measure({ ...job, port }, look ? [look] : [])
    const { outcome } = measured
    if (outcome.wrong > 0) {
      const words = outcome.complaints.join('\n')
      throw new Error(`no figures: ${outcome.wrong} answers of ${server} to ${name} were wrong\n${words}`)
    }
    if (isEvents(name) || isUsage(name)) {
      const contested = job.expect.denied !== null
      this.#done.push({ server, name, idPrefix: prefix, sent: outcome.sent, accepted: outcome.acknowledged, contested })
    }
    return measured
  }

  #figuresOf(server: ServerName, { outcome, before, after }: Measured): Figures {
    const requests = outcome.measured
    if (requests === 0) throw new Error(`no figures: ${server} answered nothing in the measured time`)
    const [from, to] = [this.#cpuOf(server, before), this.#cpuOf(server, after)]
    return {
      rps: requests / outcome.measuredS,
      p50_ms: outcome.p50Ms,
      p99_ms: outcome.p99Ms,
      cpu_ms: (to.all - from.all) / requests,
      node_cpu_ms: (to.node - from.node) / requests,
      postgres_cpu_ms: (to.postgres - from.postgres) / requests,
      generator_cpu_ms: outcome.cpuMs / requests,
      generator_cores: outcome.cpuMs / 1000 / outcome.measuredS,
    }
  }

  #cpuOf(server: ServerName, processes: Processes): { all: number; node: number; postgres: number } {
    const { service, echo, naive } = this.#parts
    const { processId } = { turnpike: service, echo, naive }[server]
    const node = treeMs(processes, processId, service.postgresId)
    const postgres = treeMs(processes, service.postgresId)
    return { all: node + postgres, node, postgres }
  }

  #nextPrefix(): string {
    return idPrefix(systemClock.now(), this.#rounds++)
  }
}
