import Type from 'typebox'
import { intervals } from '../../entitlements/index.ts'
import { rolloverPeriodsMax, unitsMax } from '../../kernel/limits.ts'
import { closed, nullable, oneOf } from '../schema.ts'

/** The terms of a grant, as Products and authors of single grants write them. */

export const allowance = Type.Optional(
  nullable(
    Type.Integer({
      minimum: 0,
      maximum: unitsMax,
      description: 'Units of the Feature, for each interval or once. Not for boolean Features.',
    }),
  ),
)

export const unlimited = Type.Optional(Type.Boolean())

export const interval = nullable(oneOf(...intervals))

export const rollover = nullable(
  closed({
    max: Type.Optional(
      nullable(
        Type.Integer({ minimum: 1, maximum: unitsMax, description: 'Most units that are rolled over; null: no limit' }),
      ),
    ),
    periods: Type.Optional(
      nullable(
        Type.Integer({
          minimum: 1,
          maximum: rolloverPeriodsMax,
          description: 'How many further periods they live; null: for ever',
        }),
      ),
    ),
  }),
)

export const shownRollover = nullable(Type.Object({ max: nullable(Type.Integer()), periods: nullable(Type.Integer()) }))

export function rolloverOf(given: Type.Static<typeof rollover> | undefined) {
  return given ? { max: given.max ?? null, periods: given.periods ?? null } : null
}
