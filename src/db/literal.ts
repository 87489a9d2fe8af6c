/**
 * PostgreSQL array literals for set-based statements: `unnest($1::int[])` takes `intArray(ids)`. Built by hand because the
 * driver's own serialisation of arrays showed up in profiles of the hot verbs.
 */
export function intArray(values: readonly (number | bigint | null)[]): string {
  let text = '{'
  for (let i = 0; i < values.length; i++) {
    if (i > 0) text += ','
    text += values[i] ?? 'null'
  }
  return `${text}}`
}

export function boolArray(values: readonly boolean[]): string {
  let text = '{'
  for (let i = 0; i < values.length; i++) {
    if (i > 0) text += ','
    text += values[i] ? 't' : 'f'
  }
  return `${text}}`
}

const special = /["\\]/
const specials = /["\\]/g

/** Text, JSON text, uuids, ISO instants: anything that PostgreSQL reads from text. NUL can't be stored and must be gone. */
export function textArray(values: readonly (string | null)[]): string {
  let text = '{'
  for (let i = 0; i < values.length; i++) {
    if (i > 0) text += ','
    const value = values[i] ?? null
    if (value === null) text += 'null'
    else text += special.test(value) ? `"${value.replace(specials, '\\$&')}"` : `"${value}"`
  }
  return `${text}}`
}
