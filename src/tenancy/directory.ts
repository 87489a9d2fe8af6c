import { timingSafeEqual } from 'node:crypto'
import pg from 'pg'
import type { Logger } from 'pino'
import type { Pool } from '../db/pool.ts'
import { asTx } from '../db/pool.ts'
import type { Clock } from '../kernel/clock.ts'
import { hashSecretKey } from './keys.ts'
import { readPublishableKeys, readRevisions, readScopes, readSecretKeys, type SecretKeyRow } from './store.ts'
import type { AppScope, Environment, Scope, SecretKeyHolder } from './types.ts'

/** How often revisions are compared when no notification came; revocation is promised within a second. */
const checkEveryMs = 500
/** Without a successful check for this long the process no longer vouches for its configuration. */
const staleAfterMs = 10_000

interface Snapshot {
  revision: bigint
  scopes: Map<number, Scope>
  scopeByProject: Map<string, Scope>
  projectsByWorkspace: Map<string, Set<string>>
  appByKey: Map<string, AppScope>
  secretByHash: Map<string, SecretKeyRow>
}

/**
 * Who may call, held whole in memory as one immutable snapshot and swapped when the instance revision moves: told by
 * NOTIFY, and compared every half second in case a notification was lost. Also knows each scope's catalogue revision.
 */
export class Directory implements AsyncDisposable {
  readonly #pool: Pool
  readonly #clock: Clock
  readonly #log: Logger
  readonly #url: string
  #snapshot: Snapshot
  #scopeRevisions: Map<number, bigint>
  #checkedAt: number
  #refreshing: Promise<void> | undefined
  #again = false
  #timer: NodeJS.Timeout | undefined
  #listener: pg.Client | undefined
  #closed = false

  private constructor(options: DirectoryOptions, snapshot: Snapshot, scopeRevisions: Map<number, bigint>) {
    this.#pool = options.pool
    this.#url = options.url
    this.#clock = options.clock
    this.#log = options.log
    this.#snapshot = snapshot
    this.#scopeRevisions = scopeRevisions
    this.#checkedAt = options.clock.now()
  }

  static async open(options: DirectoryOptions): Promise<Directory> {
    const { snapshot, scopeRevisions } = await load(options.pool)
    const directory = new Directory(options, snapshot, scopeRevisions)
    directory.#timer = setInterval(() => directory.#check(), checkEveryMs)
    directory.#timer.unref()
    directory.#listen()
    return directory
  }

  /** The scope of a live publishable key. */
  app(key: string): AppScope | undefined {
    return this.#snapshot.appByKey.get(key)
  }

  /** The holder of a live, unexpired secret key. Found by its hash, then compared in constant time. */
  secretKey(key: string): SecretKeyHolder | undefined {
    const keyHash = hashSecretKey(key)
    const row = this.#snapshot.secretByHash.get(keyHash.toString('base64'))
    if (!row || !timingSafeEqual(row.hash, keyHash)) return undefined
    if (row.expires_at && row.expires_at.getTime() <= this.#clock.now()) return undefined
    return { keyId: row.id, workspaceId: row.workspace_id, access: row.access }
  }

  scope(projectId: string, environment: Environment): Scope | undefined {
    return this.#snapshot.scopeByProject.get(`${projectId} ${environment}`)
  }

  scopeById(scopeId: number): Scope | undefined {
    return this.#snapshot.scopes.get(scopeId)
  }

  /** Ids of the workspace's live projects. */
  projectsOf(workspaceId: string): ReadonlySet<string> {
    return this.#snapshot.projectsByWorkspace.get(workspaceId) ?? new Set()
  }

  /** The newest catalogue revision this process knows of the scope. */
  catalogueRevision(scopeId: number): bigint {
    return this.#scopeRevisions.get(scopeId) ?? 0n
  }

  /** False when the configuration could not be checked against the database for a while. */
  get fresh(): boolean {
    return this.#clock.now() - this.#checkedAt < staleAfterMs
  }

  /** Reads what changed. Awaited after an own change, so that the next request already sees it. */
  refresh(): Promise<void> {
    if (this.#refreshing) {
      this.#again = true
      return this.#refreshing
    }
    this.#refreshing = this.#refreshUntilSettled().finally(() => {
      this.#refreshing = undefined
    })
    return this.#refreshing
  }

  async #refreshUntilSettled(): Promise<void> {
    do {
      this.#again = false
      const revisions = await readRevisions(this.#pool)
      if (revisions.instance === this.#snapshot.revision) {
        this.#scopeRevisions = revisions.scopes
      } else {
        const { snapshot, scopeRevisions } = await load(this.#pool)
        this.#snapshot = snapshot
        this.#scopeRevisions = scopeRevisions
      }
      this.#checkedAt = this.#clock.now()
    } while (this.#again)
  }

  #check(): void {
    this.refresh().catch((error: unknown) => this.#log.warn({ err: error }, 'configuration could not be checked'))
    if (!this.#listener) this.#listen()
  }

  /** A lost listener is opened again by the next check; until then the check alone keeps the promise. */
  #listen(): void {
    if (this.#closed) return
    const listener = new pg.Client({ connectionString: this.#url, application_name: 'turnpike listen' })
    this.#listener = listener
    const lost = () => {
      if (this.#listener === listener) this.#listener = undefined
    }
    listener.on('error', lost)
    listener.on('end', lost)
    listener.on('notification', () => {
      this.refresh().catch((error: unknown) => this.#log.warn({ err: error }, 'configuration could not be checked'))
    })
    listener
      .connect()
      .then(() => listener.query('listen turnpike_revision'))
      .catch(lost)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true
    clearInterval(this.#timer)
    await this.#listener?.end().catch(() => {})
    await this.#refreshing?.catch(() => {})
  }
}

export interface DirectoryOptions {
  pool: Pool
  /** Address of the same database, for the listening connection. */
  url: string
  clock: Clock
  log: Logger
}

/** One consistent read: the revision can't be newer than the rows that stand beside it. */
async function load(pool: Pool): Promise<{ snapshot: Snapshot; scopeRevisions: Map<number, bigint> }> {
  return pool.connected(async (client) => {
    await client.query('begin isolation level repeatable read read only')
    try {
      const tx = asTx(client)
      const revisions = await readRevisions(tx)
      const snapshot = build(
        revisions.instance,
        await readScopes(tx),
        await readPublishableKeys(tx),
        await readSecretKeys(tx),
      )
      return { snapshot, scopeRevisions: revisions.scopes }
    } finally {
      await client.query('rollback')
    }
  })
}

function build(
  revision: bigint,
  scopeRows: Awaited<ReturnType<typeof readScopes>>,
  publishableRows: Awaited<ReturnType<typeof readPublishableKeys>>,
  secretRows: SecretKeyRow[],
): Snapshot {
  const scopes = new Map<number, Scope>()
  const scopeByProject = new Map<string, Scope>()
  const projectsByWorkspace = new Map<string, Set<string>>()
  for (const row of scopeRows) {
    const scope: Scope = {
      scopeId: row.id,
      workspaceId: row.workspace_id,
      projectId: row.project_id,
      environment: row.environment,
    }
    scopes.set(row.id, scope)
    scopeByProject.set(`${row.project_id} ${row.environment}`, scope)
    const projects = projectsByWorkspace.get(row.workspace_id) ?? new Set()
    projectsByWorkspace.set(row.workspace_id, projects.add(row.project_id))
  }
  const appByKey = new Map<string, AppScope>()
  for (const row of publishableRows) {
    const scope = scopes.get(row.scope_id)
    if (!scope) continue
    appByKey.set(row.key, { ...scope, keyId: row.id, appId: row.app_id, appName: row.app_name, platform: row.platform })
  }
  const secretByHash = new Map(secretRows.map((row) => [row.hash.toString('base64'), row]))
  return { revision, scopes, scopeByProject, projectsByWorkspace, appByKey, secretByHash }
}
