import { nowOf } from '../clock/clock.ts'
import { opaque } from '../ids.ts'
import type { Connection, Sim } from '../world.ts'
import type { Account, Held } from './account.ts'

/** The one account of Stripe that a simulator has. */
export interface Cards {
  held: Held
  /** Apps of the service that sell by it, by their ids: each is told of everything. */
  endpoints: Record<string, { url: string; connection: CardConnection }>
  events: CardEvent[]
}

export type CardConnection = Pick<Connection, 'workspaceBaseUrl' | 'secretKey' | 'environmentHeader' | 'projectId'>

export interface CardEvent {
  id: string
  type: string
  /** The id of what it is about. */
  object: string
  /** Endpoints that have not taken it yet, and when they are told again. */
  waiting: string[]
  attempts: number
  nextAt: number
}

/** Made when it is first asked for: worlds from before there were cards have none. */
export function cardsOf({ world }: Sim): Cards {
  world.cards ??= {
    held: {
      secretKey: `sk_test_${opaque(world, 'stripe key', 24)}`,
      webhookSecret: `whsec_${opaque(world, 'stripe webhook', 24)}`,
      ...{ objects: {}, answered: {}, pricesOnce: [] },
    },
    ...{ endpoints: {}, events: [] },
  }
  return world.cards
}

export function accountOf(sim: Sim): Account {
  const { held } = cardsOf(sim)
  return {
    held,
    newId: (prefix) => `${prefix}${opaque(sim.world, prefix, 24)}`,
    now: () => nowOfCards(sim),
    pageUrl: (id) => `${sim.url}/stripe/pay/${id}`,
  }
}

/** That of the connected app which is furthest ahead: the project's test clock follows it. */
export function nowOfCards(sim: Sim): number {
  const ahead = sim.world.apps.filter(({ connection }) => connection !== null)
  return Math.max(sim.wall(), ...ahead.map(({ clock }) => nowOf(clock, sim.wall())))
}
