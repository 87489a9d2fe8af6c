import { writeFile } from 'node:fs/promises'
import { setPriority } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { giveWayPauseMs, giveWayTriesMax } from '../kernel/limits.ts'

/** The least share of a processor that is asked for by many. */
const lowest = 19

/**
 * Lets a server process work only while nobody else wants the processor. Questions count millions of rows; beside four of them
 * the p99 of intake was 70 to 90 ms on two cores, and 16 when they gave way.
 *
 * Linux with autogroup shares the processor between sessions first, and each server process of PostgreSQL is a session of
 * its own: there its own niceness decides nothing, and that of its session has to be set as well. What can't be set stays as
 * it is: another system, or no permission.
 *
 * For processes that only read. One that writes takes locks in the server's memory that committers wait for, and whoever
 * gives way may hold them for long.
 */
export async function giveWay(processId: number): Promise<void> {
  try {
    setPriority(processId, lowest)
    await giveWayAsSession(processId)
  } catch {
    // It works on as before.
  }
}

/** The kernel takes one such change in a tenth of a second, from all who aren't root together. */
async function giveWayAsSession(processId: number): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      return await writeFile(`/proc/${processId}/autogroup`, String(lowest), { flag: 'r+' })
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN' || tries === giveWayTriesMax) throw error
      await sleep(giveWayPauseMs, undefined, { ref: false })
    }
  }
}
