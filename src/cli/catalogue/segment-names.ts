import { StartError } from '../../kernel/start-error.ts'

/** What a file calls segments: their ids differ from one environment to another, their names need not. */
export type Definition = Record<string, unknown>

/** The definition with `change` made of what each of its `segment` conditions says. */
function withSegments(definition: Definition, change: (asked: Definition) => Definition): Definition {
  return { ...definition, where: node(definition.where) }

  function node(json: unknown): unknown {
    if (!isObject(json)) return json
    const changed = { ...json }
    for (const kind of ['all', 'any']) if (Array.isArray(json[kind])) changed[kind] = json[kind].map(node)
    if ('not' in json) changed.not = node(json.not)
    if (isObject(json.segment)) changed.segment = change(json.segment)
    return changed
  }
}

/** As it stands in a file: `{"segment": {"name": …, "is": …}}`. */
export function named(definition: Definition, names: ReadonlyMap<unknown, string>): Definition {
  return withSegments(definition, ({ id, ...rest }) => ({ name: names.get(id) ?? id, ...rest }))
}

/** As the Workspace API takes it, with the ids of the environment that it comes to. */
export function identified(definition: Definition, ids: ReadonlyMap<unknown, string>): Definition {
  return withSegments(definition, ({ name, ...rest }) => ({ id: ids.get(name) ?? name, ...rest }))
}

/** The names of the segments that a definition of a file asks for. */
export function askedNames(definition: Definition): unknown[] {
  const names: unknown[] = []
  withSegments(definition, (asked) => {
    names.push(asked.name)
    return asked
  })
  return names
}

/** What is asked for before what asks for it. */
export function inOrder<Entry extends { name: string; definition: Definition }>(entries: readonly Entry[]): Entry[] {
  const byName = new Map<unknown, Entry>(entries.map((entry) => [entry.name, entry]))
  const ordered = new Set<Entry>()
  const visit = (entry: Entry, around: ReadonlySet<Entry>) => {
    if (around.has(entry)) throw new StartError(`Segment ${entry.name} asks for itself, directly or further around`)
    if (ordered.has(entry)) return
    for (const name of askedNames(entry.definition)) {
      const asked = byName.get(name)
      if (asked) visit(asked, new Set([...around, entry]))
    }
    ordered.add(entry)
  }
  for (const entry of entries) visit(entry, new Set())
  return [...ordered]
}

function isObject(json: unknown): json is Definition {
  return typeof json === 'object' && json !== null && !Array.isArray(json)
}
