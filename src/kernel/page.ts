/** One page of a list, newest first. */
export interface Page {
  /** At most this many rows. */
  limit: number
  /** Only what comes after the object with this id, in the list's order; null from the beginning. */
  after: string | null
}
