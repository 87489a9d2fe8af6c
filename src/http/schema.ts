// Adds `operationId`, `summary` and the like to the route schemas.
import type {} from '@fastify/swagger'
import Type, { type TProperties, type TSchema, type TSchemaOptions } from 'typebox'
import { customerIdCharsMax } from '../kernel/limits.ts'

/** Schema parts that several operations share. Keywords that begin with `x-` are ours: see validator.ts. */

export function closed<P extends TProperties>(properties: P, options: TSchemaOptions = {}) {
  return Type.Object(properties, { additionalProperties: false, ...options })
}

export function oneOf<const T extends string>(...values: T[]) {
  return Type.Unsafe<T>({ type: 'string', enum: values })
}

export function nullable<T extends TSchema>(schema: T) {
  return Type.Unsafe<Type.Static<T> | null>({ anyOf: [schema, { type: 'null' }] })
}

export const nullableNumber = Type.Unsafe<number | null>({ type: ['number', 'null'] })
export const nullableString = Type.Unsafe<string | null>({ type: ['string', 'null'] })

const customerIdRules = {
  minLength: 1,
  maxLength: customerIdCharsMax,
  'x-not-blank': true,
  'x-storable': true,
  'x-not-reserved': true,
  description: 'The customer id your app uses. Not `anonymous`, `guest`, `undefined` or `null`.',
}

/** 1 to 256 characters, not a placeholder such as `anonymous`, storable text; kept as sent. */
export const customerId = Type.String(customerIdRules)

/** The same for Feature usage, where identifiers with outer white space are refused. */
export const usageCustomerId = Type.String({ ...customerIdRules, 'x-trimmed': true })

/** Identifiers of Feature usage: non-empty, without outer white space, storable. */
export function usageId(description: string, options: { charsMax?: number; bytesMax?: number } = {}) {
  return Type.String({
    minLength: 1,
    ...(options.charsMax === undefined ? {} : { maxLength: options.charsMax }),
    ...(options.bytesMax === undefined ? {} : { 'x-bytes-max': options.bytesMax }),
    'x-trimmed': true,
    'x-storable': true,
    description,
  })
}

export const instant = Type.String({ format: 'date-time', description: 'ISO 8601, UTC, milliseconds' })
