/** The parameters of one statement: whatever a caller sent goes in here, and only its number into the text. */
export interface Params {
  values: unknown[]
  /** Gives the place-holder, such as `$3`. */
  add: (value: unknown) => string
}

export function createParams(): Params {
  const values: unknown[] = []
  return { values, add: (value) => `$${values.push(value)}` }
}
