import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'

/** Clock ticks per second in /proc: 100 on every Linux that Node runs on. */
const ticksPerS = 100

interface Process {
  parent: number
  /** Processor time of all its threads, and of the children it has already buried. */
  ms: number
}

/** All processes of this machine at one instant. */
export type Processes = Map<number, Process>

export function readProcesses(): Processes {
  return process.platform === 'linux' ? fromProc() : fromPs()
}

/** Processor time of a process and all its descendants, leaving out the tree of `without`. */
export function treeMs(processes: Processes, root: number, without?: number): number {
  const children = Map.groupBy(processes.keys(), (pid) => processes.get(pid)?.parent ?? 0)
  const sum = (pid: number): number => {
    const below = (children.get(pid) ?? []).filter((child) => child !== without)
    return below.reduce((total, child) => total + sum(child), processes.get(pid)?.ms ?? 0)
  }
  return sum(root)
}

function fromProc(): Processes {
  const processes: Processes = new Map()
  for (const name of readdirSync('/proc')) {
    const pid = Number(name)
    if (!Number.isInteger(pid)) continue
    try {
      const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
      // The name in brackets may hold spaces, so fields are counted from behind it: state, parent, …
      const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
      const ticks = fields.slice(11, 15).reduce((total, field) => total + Number(field), 0) // utime stime cutime cstime
      processes.set(pid, { parent: Number(fields[1]), ms: (ticks * 1000) / ticksPerS })
    } catch {
      // It ended while we were looking: its parent now carries its time.
    }
  }
  return processes
}

function fromPs(): Processes {
  const lines = execFileSync('ps', ['-A', '-o', 'pid=,ppid=,time=']).toString().trim().split('\n')
  const rows = lines.map((line) => line.trim().split(/\s+/))
  return new Map(rows.map(([pid, parent, time = '']) => [Number(pid), { parent: Number(parent), ms: msOf(time) }]))
}

/** `[[days-]hours:]minutes:seconds[.hundredths]` */
function msOf(time: string): number {
  const [days, clock] = time.includes('-') ? time.split('-') : ['0', time]
  const seconds = (clock ?? '').split(':').reduce((total, part) => total * 60 + Number(part), 0)
  return (Number(days) * 86_400 + seconds) * 1000
}
