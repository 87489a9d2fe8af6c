import Type from 'typebox'
import { customerId } from '../schema.ts'

const properties = Type.Record(Type.String(), Type.Unknown())

/** The documented fields of an event, alone or in a batch. Optional fields may be null. Unknown fields are ignored. */
export const eventFields = {
  event: Type.String({ minLength: 1, maxLength: 200, description: 'Names that begin with `$` are reserved.' }),
  distinct_id: customerId,
  properties: Type.Optional(
    Type.Object(
      {
        $set: Type.Optional(properties),
        $set_once: Type.Optional(properties),
        $unset: Type.Optional(Type.Array(Type.String())),
        $increment: Type.Optional(Type.Record(Type.String(), Type.Number())),
      },
      { description: 'Event values, and directives for customer properties.' },
    ),
  ),
  timestamp: Type.Optional(Type.String({ description: 'ISO 8601, when the event happened.' })),
  uuid: Type.Optional(
    Type.String({ format: 'uuid', description: 'Required unless `idempotency_key` is sent. Reuse it on retries.' }),
  ),
  idempotency_key: Type.Optional(Type.String({ format: 'uuid' })),
  value: Type.Optional(Type.Number()),
  entityId: Type.Optional(Type.String({ minLength: 1, maxLength: 256 })),
  $anon_distinct_id: Type.Optional(Type.String({ description: 'Prior anonymous identity, with `$identify`.' })),
}
