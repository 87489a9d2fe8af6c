import { STATUS_CODES } from 'node:http'

/** A JSON object, as a document holds it. */
export type Json = { [key: string]: unknown }

/**
 * Says once what a document says often: every schema with a title goes to `components/schemas` under that title, every
 * error answer to `components/responses` under the words of its status. Equal names must mean equal things.
 */
export function hoist(document: Json): Json {
  const schemas = new Shelf('schemas')
  const responses = new Shelf('responses')

  function walk(value: unknown, key: string): unknown {
    if (Array.isArray(value)) return value.map((item) => walk(item, key))
    if (!isObject(value)) return value
    const inner = Object.fromEntries(Object.entries(value).map(([name, member]) => [name, walk(member, name)]))
    if (typeof inner.title === 'string') return schemas.put(inner.title, withoutWords(inner))
    return key === 'responses' ? answers(inner, responses) : inner
  }

  const { components, paths, ...head } = JSON.parse(JSON.stringify(document)) as Json // what will be written
  const walked = walk(paths, 'paths')
  const shelves = { responses: responses.sorted(), schemas: schemas.sorted() }
  return { ...head, paths: walked, components: { ...(components as Json), ...shelves } }
}

/** The name stands where the schema is kept, and what an answer means stands beside its schema. */
function withoutWords(schema: Json): Json {
  return Object.fromEntries(Object.entries(schema).filter(([key]) => key !== 'title' && key !== 'description'))
}

function answers(byStatus: Json, shelf: Shelf): Json {
  const entries = Object.entries(byStatus).map(([status, response]) => {
    const words = STATUS_CODES[status] ?? status
    if (!isObject(response)) return [status, response] as const
    if (response.description === 'Default Response') return [status, { ...response, description: words }] as const
    return [status, isError(response) ? shelf.put(words.replaceAll(' ', ''), response) : response] as const
  })
  return Object.fromEntries(entries)
}

function isError(response: Json): boolean {
  return JSON.stringify(response).includes('"#/components/schemas/Error"')
}

class Shelf {
  readonly #name: string
  readonly #kept = new Map<string, { value: Json; text: string }>()

  constructor(name: string) {
    this.#name = name
  }

  /** The reference to what is kept. */
  put(name: string, value: Json): Json {
    const text = JSON.stringify(value)
    const known = this.#kept.get(name)
    if (known && known.text !== text) throw new Error(`components/${this.#name} has two different ${name}`)
    this.#kept.set(name, { value, text })
    return { $ref: `#/components/${this.#name}/${name}` }
  }

  sorted(): Json {
    return Object.fromEntries(
      [...this.#kept].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([name, { value }]) => [name, value]),
    )
  }
}

function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
