import { canonicalJson } from '../../kernel/canonical-json.ts'
import type { CatalogueFile, FeatureEntry, ProductEntry, SegmentEntry } from './file.ts'
import { askedNames, inOrder } from './segment-names.ts'

/** One thing that an import does. */
export type Step =
  | { object: 'feature'; does: 'create' | 'update'; entry: FeatureEntry; changes: Change[] }
  | { object: 'product'; does: 'create' | 'update'; entry: ProductEntry; changes: Change[] }
  | { object: 'segment'; does: 'create' | 'update'; entry: SegmentEntry; changes: Change[] }
  | { object: 'feature'; does: 'publish' | 'archive'; key: string }
  | { object: 'product'; does: 'archive'; key: string }

export interface Change {
  field: string
  from: unknown
  to: unknown
}

export interface Plan {
  /** In an order in which each finds what it refers to. */
  steps: Step[]
  /** What can't be made so: one sentence each. */
  obstacles: string[]
  /** What is there and not in the file, as `Feature exports`; it is left alone. */
  unnamed: string[]
}

/** What makes `current` say what `wanted` says. */
export function planImport(current: CatalogueFile, wanted: CatalogueFile): Plan {
  const obstacles: string[] = []
  const features = pair(current.features, wanted.features)
  const products = pair(current.products, wanted.products)
  for (const { before, after } of features) obstacles.push(...objectionsTo('Feature', before, after))
  for (const { before, after } of products) obstacles.push(...objectionsTo('Product', before, after))
  const segments = { current: current.segments ?? [], wanted: wanted.segments ?? [] }
  obstacles.push(...missingSegments(segments))
  const steps: Step[] = [
    // Credit systems name metered Features, and Products name published ones: those come first, and nothing is archived before.
    ...features
      .filter(({ before, after }) => before?.status !== 'published' && before && after.status === 'published')
      .map(publish),
    ...features.filter(({ after }) => after.type !== 'creditSystem').flatMap(writeFeature),
    ...features.filter(({ after }) => after.type === 'creditSystem').flatMap(writeFeature),
    ...products.flatMap(writeProduct),
    ...writeSegments(segments),
    ...products.filter(isToArchive).map(({ after }): Step => ({ object: 'product', does: 'archive', key: after.key })),
    ...features.filter(isToArchive).map(({ after }): Step => ({ object: 'feature', does: 'archive', key: after.key })),
  ]
  const unnamed = [
    ...leftOut('Feature', current.features, wanted.features),
    ...leftOut('Product', current.products, wanted.products),
    ...leftOut('Segment', segments.current.map(byName), segments.wanted.map(byName)),
  ]
  return { steps, obstacles, unnamed }
}

interface Pair<Entry> {
  before: Entry | undefined
  after: Entry
}

function pair<Entry extends { key: string }>(current: Entry[], wanted: Entry[]): Pair<Entry>[] {
  const byKey = new Map(current.map((entry) => [entry.key, entry]))
  return wanted.map((after) => ({ before: byKey.get(after.key), after }))
}

/** What no operation of the Workspace API could do either. */
function objectionsTo<Entry extends FeatureEntry | ProductEntry>(
  noun: string,
  before: Entry | undefined,
  after: Entry,
): string[] {
  if (!before) return []
  const objections: string[] = []
  if (before.type !== after.type)
    objections.push(`${noun} ${after.key} is ${before.type}: its type cannot become ${after.type}`)
  if (after.status === 'draft' && before.status !== 'draft')
    objections.push(`${noun} ${after.key} is ${before.status}: it cannot become a draft again`)
  if (after.status === 'active' && before.status === 'archived')
    objections.push(`${noun} ${after.key} is archived: it cannot become active again`)
  return objections
}

function writeFeature({ before, after }: Pair<FeatureEntry>): Step[] {
  const changes = changesOf(before, after)
  if (before && changes.length === 0) return []
  return [{ object: 'feature', does: before ? 'update' : 'create', entry: after, changes }]
}

function writeProduct({ before, after }: Pair<ProductEntry>): Step[] {
  const changes = changesOf(before, after)
  if (before && changes.length === 0) return []
  return [{ object: 'product', does: before ? 'update' : 'create', entry: after, changes }]
}

interface Segments {
  current: SegmentEntry[]
  wanted: SegmentEntry[]
}

const byName = ({ name }: SegmentEntry) => ({ key: name })

function missingSegments({ current, wanted }: Segments): string[] {
  const known = new Set<unknown>([...current, ...wanted].map(({ name }) => name))
  return wanted.flatMap(({ name, definition }) =>
    askedNames(definition)
      .filter((asked) => !known.has(asked))
      .map((asked) => `Segment ${name} asks for Segment ${String(asked)}, which there is not`),
  )
}

function writeSegments({ current, wanted }: Segments): Step[] {
  const before = new Map(current.map((entry) => [entry.name, entry]))
  return inOrder(wanted).flatMap((entry): Step[] => {
    const was = before.get(entry.name)
    const changes = changesOf(was, entry)
    if (was && changes.length === 0) return []
    return [{ object: 'segment', does: was ? 'update' : 'create', entry, changes }]
  })
}

function publish({ after }: Pair<FeatureEntry>): Step {
  return { object: 'feature', does: 'publish', key: after.key }
}

function isToArchive({ before, after }: Pair<FeatureEntry | ProductEntry>): boolean {
  return after.status === 'archived' && before?.status !== 'archived'
}

/** The status has steps of its own, the type never changes, and a field that is left out is left alone. */
function changesOf(before: object | undefined, after: object): Change[] {
  const was = new Map<string, unknown>(Object.entries(before ?? {}))
  return Object.entries(after)
    .filter(([field]) => !['key', 'type', 'status'].includes(field))
    .flatMap(([field, to]) => differences(field, was.get(field) ?? null, to ?? null))
}

/** As deep down as they lie: `grants.1.allowance`. */
function differences(field: string, from: unknown, to: unknown): Change[] {
  if (canonicalJson(from) === canonicalJson(to)) return []
  if (!isComposed(from) || !isComposed(to)) return [{ field, from, to }]
  const [was, is] = [new Map(Object.entries(from)), new Map(Object.entries(to))]
  const names = [...new Set([...was.keys(), ...is.keys()])]
  return names.flatMap((name) => differences(`${field}.${name}`, was.get(name) ?? null, is.get(name) ?? null))
}

function isComposed(value: unknown): value is object {
  return typeof value === 'object' && value !== null
}

function leftOut(noun: string, current: { key: string }[], wanted: { key: string }[]): string[] {
  const named = new Set(wanted.map(({ key }) => key))
  return current.filter(({ key }) => !named.has(key)).map(({ key }) => `${noun} ${key}`)
}
