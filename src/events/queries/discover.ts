import type { Pool, Sql } from '../../db/pool.ts'
import { eventNamesMax, eventPropertiesMax } from '../../kernel/limits.ts'
import type { Scope } from '../../tenancy/index.ts'
import { isRecognised, systemEvent } from '../catalogue.ts'
import type { Freshness } from '../freshness.ts'
import { typeNames } from './discovery.ts'
import { selectNames, selectProperties, selectValues, type ValueRow } from './discovery-store.ts'
import { snapshot } from './snapshot.ts'

export interface EventName {
  event: string
  recognised: boolean
  /** Of no interest to most people: system events but those of an app's life. */
  hidden: boolean
  firstSeen: Date
  lastSeen: Date
}

export interface EventProperty {
  property: string
  /** JSON types it was seen with. */
  types: string[]
  lastSeen: Date
}

export interface Discovered<T> {
  data: T[]
  /** There were more than are kept. */
  truncated: boolean
  freshness: Freshness
}

/** Which names, properties and values there are, so that questions can be asked. */
export function createDiscover(pool: Pool) {
  const ask = <Row, T>(
    scope: Scope,
    read: { rows: (sql: Sql) => Promise<Row[]>; max: number; show: (row: Row) => T },
  ) =>
    snapshot(pool, { scope }, async ({ tx, freshness }) => {
      const rows = await read.rows(tx)
      return { data: rows.slice(0, read.max).map(read.show), truncated: rows.length > read.max, freshness }
    })
  return {
    names: (scope: Scope): Promise<Discovered<EventName>> =>
      ask(scope, {
        rows: (sql) => selectNames(sql, scope),
        max: eventNamesMax,
        show: ({ event, first_seen: firstSeen, last_seen: lastSeen }) => ({
          ...{ event, recognised: isRecognised(event, { fact: true }), hidden: isHidden(event), firstSeen, lastSeen },
        }),
      }),
    properties: (scope: Scope, event: string): Promise<Discovered<EventProperty>> =>
      ask(scope, {
        rows: (sql) => selectProperties(sql, scope, event),
        max: eventPropertiesMax,
        show: ({ property, types, last_seen: lastSeen }) => ({
          ...{ property, types: typeNames.filter((_, bit) => types & (1 << bit)), lastSeen },
        }),
      }),
    /** Of the newest events of the name only. */
    values: (scope: Scope, of: { event: string; property: string; prefix: string }): Promise<Discovered<ValueRow>> =>
      ask(scope, {
        rows: (sql) => selectValues(sql, scope, of),
        max: Number.POSITIVE_INFINITY,
        show: (row) => row,
      }),
  }
}

function isHidden(event: string): boolean {
  return event.startsWith('$') && systemEvent(event)?.group !== 'lifecycle'
}
