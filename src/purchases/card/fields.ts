import { storeIdCharsMax } from '../../kernel/limits.ts'
import type { Ms } from '../types.ts'
import { isObject } from './api.ts'

export type Fields = Record<string, unknown>

/** Ids and words of Stripe are short: whatever is longer is none. */
export function textIn(object: Fields, name: string): string | null {
  const value = object[name]
  return typeof value === 'string' && value !== '' && value.length <= storeIdCharsMax ? value : null
}

/** Stripe gives the id of another object, or the object itself where it was asked to. */
export function idIn(object: Fields, name: string): string | null {
  const value = object[name]
  return isObject(value) ? textIn(value, 'id') : textIn(object, name)
}

export function objectIn(object: Fields, name: string): Fields {
  const value = object[name]
  return isObject(value) ? value : {}
}

/** Instants of Stripe are whole seconds, of years of four digits. */
export function timeIn(object: Fields, name: string): Ms | null {
  const value = object[name]
  const isTime = typeof value === 'number' && Number.isInteger(value) && value >= 0 && value < endOfTimeS
  return isTime ? value * 1000 : null
}

const endOfTimeS = Date.UTC(10_000, 0) / 1000

export function countIn(object: Fields, name: string): number {
  const value = object[name]
  return typeof value === 'number' && Number.isInteger(value) && value > 0 && value < 2 ** 31 ? value : 1
}

export function listIn(object: Fields, name = 'data'): Fields[] {
  const value = object[name]
  return Array.isArray(value) ? value.filter(isObject) : []
}
