import fc from '../harness/random.ts'

/** What happens to one of four customers, or to one of three Experiences. */
export type Act =
  | { do: 'publish'; of: number; inFlight: string }
  | { do: 'rollback'; of: number; to: number; inFlight: string }
  | { do: 'pause' | 'resume'; of: number }
  | { do: 'unpublish'; of: number; inFlight: string }
  | { do: 'rotate' }
  | { do: 'start'; who: number; of: number; key: number }
  | { do: 'begin' | 'complete'; who: number; slot: number; version: number }
  | { do: 'report'; who: number; generation: number; isDone: boolean }
  | { do: 'paid' | 'again' | 'tick'; who: number }
  | { do: 'log in'; who: number; source: number }
  | { do: 'split' | 'delete'; who: number }
  | { do: 'merge'; who: number; source: number }
  | { do: 'fetch'; who: number; device: number }
  | { do: 'crash' }

const who = fc.nat(3)
const of = fc.nat(2)
const moved = fc.constantFrom('finish', 'move_armed', 'stop')

export const act: fc.Arbitrary<Act> = fc.oneof(
  { weight: 2, arbitrary: fc.record({ do: fc.constant('publish' as const), of, inFlight: moved }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('rollback' as const), of, to: fc.nat(9), inFlight: moved }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constantFrom('pause' as const, 'resume' as const), of }) },
  fc.record({ do: fc.constant('unpublish' as const), of, inFlight: fc.constantFrom('finish', 'stop') }),
  fc.record({ do: fc.constantFrom('rotate' as const, 'crash' as const) }),
  {
    weight: 8,
    arbitrary: fc.record({ do: fc.constant('start' as const), who, of: fc.constantFrom(1, 2), key: fc.nat(1) }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constantFrom('begin' as const, 'complete' as const),
      who,
      slot: fc.nat(1),
      version: fc.nat(9),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({ do: fc.constant('report' as const), who, generation: fc.nat(2), isDone: fc.boolean() }),
  },
  { weight: 7, arbitrary: fc.record({ do: fc.constantFrom('paid' as const, 'again' as const, 'tick' as const), who }) },
  { weight: 6, arbitrary: fc.record({ do: fc.constant('fetch' as const), who, device: fc.nat(1) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('merge' as const), who, source: who }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('log in' as const), who, source: who }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('split' as const), who }) },
  fc.record({ do: fc.constant('delete' as const), who }),
)
