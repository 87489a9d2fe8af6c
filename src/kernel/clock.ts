/** The process clock: for queues, logs and leases. Decisions about units and events take the database clock instead. */
export interface Clock {
  /** Unix milliseconds. */
  now(): number
}

export const systemClock: Clock = { now: () => Date.now() }
