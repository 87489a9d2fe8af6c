import { setTimeout as sleep } from 'node:timers/promises'
import { signal } from '../src/db/embedded/process.ts'
import { unreachable } from '../src/kernel/assert.ts'
import { postgresOf } from '../test/harness/turnpike.ts'
import type { Trouble } from './schedule.ts'
import type { Load, World } from './world.ts'

/** Does what a schedule says, and counts the processes it killed. */
export class Troublemaker implements Disposable {
  kills = 0
  readonly #world: World
  readonly #loads: Load[]
  readonly #stopped = new Set<number>()

  constructor(world: World, loads: Load[]) {
    this.#world = world
    this.#loads = loads
  }

  /** Resolves when this trouble is over. What could not be done, because what it is about is not there, is left out. */
  async make(trouble: Trouble): Promise<void> {
    const { kind, lastsMs, which } = trouble
    const { pieces, network, callers } = this.#world
    switch (kind) {
      case 'kill_service':
      case 'kill_api':
      case 'kill_worker':
        return this.#kill([pieces[kind.slice('kill_'.length) as keyof typeof pieces]], lastsMs) // the end of the three
      case 'kill_postgres':
        return this.#killPostgres()
      case 'kill_backend':
        return this.#killBackend(which)
      case 'kill_service_and_postgres':
        this.#kill([pieces.service], lastsMs)
        return this.#killPostgres()
      case 'kill_everything':
        this.#kill(Object.values(pieces), lastsMs)
        return this.#killPostgres()
      case 'end_backends':
        return this.#endBackends(which)
      case 'pause_service':
        return pieces.service.pause(lastsMs)
      case 'pause_worker':
        return pieces.worker.pause(lastsMs)
      case 'pause_postgres':
        return this.#pausePostgres(lastsMs)
      case 'cut_before_statement':
        return repeatedly(lastsMs, (i) => network.cut(1 + ((which + i) % 9), 'before'))
      case 'cut_after_statement':
        return repeatedly(lastsMs, (i) => network.cut(1 + ((which + i) % 9), 'after'))
      case 'cut_callers':
        return repeatedly(lastsMs, () => {
          for (const proxy of callers) proxy.cut()
        })
      case 'swallow_replies':
        return repeatedly(lastsMs, () => {
          for (const proxy of callers) proxy.swallow(5)
        })
      case 'delay_replies':
        for (const proxy of callers) proxy.delay(500 + 4 * which)
        await sleep(lastsMs)
        for (const proxy of callers) proxy.delay(0)
        return
      default:
        return unreachable(kind)
    }
  }

  /** Lets go on whatever still stands still. */
  [Symbol.dispose](): void {
    for (const processId of this.#stopped) signal(processId, 'SIGCONT')
    this.#stopped.clear()
  }

  #kill(pieces: World['pieces'][keyof World['pieces']][], deadMs: number): void {
    for (const piece of pieces) if (piece.kill(deadMs)) this.kills++
  }

  async #killPostgres(): Promise<void> {
    const { processId } = await postgresOf(this.#world.dataDir)
    if (processId === 0) return
    signal(processId, 'SIGKILL')
    this.kills++
  }

  /** PostgreSQL then ends all others and recovers. */
  async #killBackend(which: number): Promise<void> {
    const backends = await this.#processes(`backend_type = 'client backend' and pid <> pg_backend_pid()`)
    const processId = backends[which % Math.max(backends.length, 1)]
    if (processId === undefined) return
    signal(processId, 'SIGKILL')
    this.kills++
  }

  async #endBackends(which: number): Promise<void> {
    await this.#world.pool
      .query(
        `select pg_terminate_backend(pid)
        from pg_stat_activity
        where application_name like 'turnpike %'
          and pid <> pg_backend_pid()
          and (pid + $1) % 3 = 0`,
        [which],
      )
      .catch(absent)
  }

  /** All of it: every connection is then one that hangs. Meanwhile callers bring more than the queue can hold. */
  async #pausePostgres(ms: number): Promise<void> {
    const { processId } = await postgresOf(this.#world.dataDir)
    const all = [...(await this.#processes('true')), processId].filter((id) => id > 0 && !this.#stopped.has(id))
    for (const id of all) {
      this.#stopped.add(id)
      signal(id, 'SIGSTOP')
    }
    for (const load of this.#loads) load.flood()
    await sleep(ms)
    for (const id of all) {
      this.#stopped.delete(id)
      signal(id, 'SIGCONT')
    }
  }

  async #processes(condition: string): Promise<number[]> {
    const found = await this.#world.pool
      .query<{ pid: number }>(`select pid from pg_stat_activity where ${condition} order by pid`)
      .catch(absent)
    return found.map(({ pid }) => pid)
  }
}

/** The database is not there at the moment: then it is in trouble already. */
function absent(): never[] {
  return []
}

const times = 8

async function repeatedly(ms: number, act: (i: number) => void): Promise<void> {
  for (let i = 0; i < times; i++) {
    act(i)
    await sleep(ms / times)
  }
}
