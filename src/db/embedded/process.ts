import { readFileSync } from 'node:fs'

/** Whether a process with this id runs; one that has ended and waits to be reaped does not. */
export function isAlive(processId: number): boolean {
  try {
    process.kill(processId, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM' // what kill throws
  }
  const state = /^\d+ \(.*\) (\S)/s.exec(read(`/proc/${processId}/stat`) ?? '')?.[1]
  return state !== 'Z' && state !== 'X'
}

/** Sends a signal; that the process has just gone is no error. */
export function signal(processId: number, name: NodeJS.Signals): void {
  try {
    process.kill(processId, name)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error // what kill throws
  }
}

/** The program and arguments of a process; undefined where the system does not tell. */
export function commandOf(processId: number): string[] | undefined {
  return read(`/proc/${processId}/cmdline`)?.split('\0')
}

function read(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    // Not Linux, or the process has just gone.
    return undefined
  }
}
