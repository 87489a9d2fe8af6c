/** Who moved units by hand, and the words that they gave for it. */
export interface EntryDetail {
  /** Id of a key or user; null for Turnpike itself. */
  actor: string | null
  note: string | null
}

/** As an entry stores it; null when there is nothing to tell. */
export function detailJson({ actor, note }: EntryDetail): string | null {
  return actor === null && note === null ? null : JSON.stringify({ actor, note })
}

export function detailOf(json: string | null | undefined): EntryDetail {
  if (json === null || json === undefined) return { actor: null, note: null }
  const { actor, note } = JSON.parse(json) as EntryDetail // written by detailJson
  return { actor, note }
}
