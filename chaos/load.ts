/**
 * A load process: `load.ts CONFIG.json`. Its clients send their turns until a line `stop` comes, each turn until it has a
 * final answer; `flood` makes the flood clients send one more turn each. Ends when all have ended, or with its input.
 */
import { readFileSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Answer, openRecord, type RecordFile, writeAnswer } from './record.ts'
import { type Access, send, type Tries } from './send.ts'
import { type ClientOptions, type Turn, turnsOf } from './turns.ts'

export interface LoadConfig extends Access {
  clients: ClientOptions[]
  /** Path of the record. */
  record: string
}

/** Between two turns of a client, on average, and between two tries of one turn. */
const pauseMs = 100
const againMs = 60

const path = process.argv[2]
if (path !== undefined) await run(JSON.parse(readFileSync(path, 'utf8')) as LoadConfig) // written by the world

async function run(config: LoadConfig): Promise<void> {
  const record = openRecord(config.record)
  const control = { stopping: false, flood: Promise.withResolvers<void>() }
  const lines = createInterface(process.stdin)
  lines.on('line', (line) => {
    if (line === 'stop') control.stopping = true
    control.flood.resolve()
    control.flood = Promise.withResolvers()
  })
  // Whoever started us is gone.
  lines.on('close', () => process.exit(1))
  await Promise.all(config.clients.map((options) => act(options, config, record, control)))
  record.close()
  process.exit(0)
}

interface Control {
  stopping: boolean
  flood: PromiseWithResolvers<void>
}

async function act(options: ClientOptions, access: Access, record: RecordFile, control: Control): Promise<void> {
  let n = 0
  for (const turn of turnsOf(options)) {
    if (options.flood && !control.stopping) await control.flood.promise
    else if (!options.flood) await sleep(2 * pauseMs * Math.random())
    if (control.stopping) return
    await untilAnswered(turn, access, { record, client: options.client, turn: n++ })
  }
}

async function untilAnswered(
  turn: Turn,
  access: Access,
  { record, client, turn: n }: { record: RecordFile; client: number; turn: number },
): Promise<void> {
  const write = (mark: '>' | '!' | '<', detail: string) => record.write({ mark, client, turn: n, detail })
  for (const tries: Tries = { client, count: 0 }; ; tries.count++) {
    write('>', `${turn.kind} ${tries.count}`)
    try {
      const answer = await send(turn, access, tries)
      if (answer) return write('<', writeAnswer(slim(turn, answer)))
      write('!', 'not now')
    } catch (error) {
      write('!', wordsOf(error))
    }
    if (turn.kind === 'event' && turn.once) return
    await sleep(2 * againMs * Math.random())
  }
}

/** Without what nothing is checked against. */
function slim({ kind }: Turn, { status, body }: Answer): Answer {
  if (kind === 'look' && status === 200) return { status, body: {} }
  if (kind === 'event' && status === 200) return { status, body: { eventId: (body as { eventId: unknown }).eventId } }
  return { status, body }
}

function wordsOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const { cause } = error
  const words = cause instanceof Error ? `${error.message}: ${cause.message}` : error.message
  return words.replace(/\s+/g, ' ')
}
