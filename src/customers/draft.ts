import type { JsonObject } from '../events/index.ts'
import { assert, must } from '../kernel/assert.ts'
import { emptyPropertySet, jsonText, type PropertySet, parsePropertySet, toObject } from './property-set.ts'
import type { CustomerRecord, CustomerWrite } from './slice.ts'

/** A customer while a slice is being folded onto it. */
export interface Draft {
  /** As loaded; null for one born in this slice. */
  loaded: CustomerRecord | null
  id: string
  generation: number
  identified: boolean
  createdAt: number
  version: number
  aliasCount: number
  mergedInto: string | null
  /** Opened when first needed: most events touch no property. */
  properties: PropertySet | null
  propertiesChanged: boolean
  /** The event that changed it last. */
  touchedBy: number
}

export function draftOf(loaded: CustomerRecord): Draft {
  const { id, generation, identified, createdAt, version, aliasCount } = loaded
  return {
    ...{ loaded, id, generation, identified, createdAt, version, aliasCount },
    ...{ mergedInto: null, properties: null, propertiesChanged: false, touchedBy: -1 },
  }
}

export function newborn(birth: { customerId: string; generation: number }, createdAt: number, event: number): Draft {
  return {
    loaded: null,
    id: birth.customerId,
    generation: birth.generation,
    identified: false,
    createdAt,
    version: 1,
    aliasCount: 0,
    mergedInto: null,
    properties: emptyPropertySet(),
    propertiesChanged: true,
    touchedBy: event,
  }
}

/** Raises the version, once for all that one event changes. */
export function touch(draft: Draft, event: number): void {
  if (draft.touchedBy !== event) draft.version++
  draft.touchedBy = event
}

export function propertiesOf(draft: Draft): PropertySet {
  draft.properties ??= parsePropertySet(
    must(draft.loaded?.properties, 'the properties were loaded'),
    must(draft.loaded?.times, 'the write times were loaded'),
  )
  return draft.properties
}

/** The whole record as it stands, for the journal. */
export function imageOf(draft: Draft): JsonObject {
  const { values, times } = propertiesOf(draft)
  return {
    customer_id: draft.id,
    identified: draft.identified,
    created_at_ms: draft.createdAt,
    version: draft.version,
    generation: draft.generation,
    properties: toObject(values),
    props_at: toObject(times),
  }
}

/** The row to write; null when the slice left it as it was. */
export function writeOf(draft: Draft): CustomerWrite | null {
  const { loaded, id, identified, createdAt, version, generation, aliasCount, mergedInto } = draft
  if (loaded?.version === version) return null
  assert(aliasCount > 0 || mergedInto !== null, 'a live customer has a distinct id')
  const changed = draft.propertiesChanged ? propertiesOf(draft) : null
  return {
    id,
    properties: changed && jsonText(changed.values),
    times: changed && jsonText(changed.times),
    identified,
    createdAt,
    version,
    expectedVersion: loaded?.version ?? 0,
    generation,
    aliasCount,
    mergedInto,
  }
}
