/** As the API shows it. */
export interface Thing {
  id: string
  object: string
  /** Of a subscription. */
  items?: { data: Line[] }
  /** Of a page or an invoice. */
  lines?: Line[]
  [name: string]: unknown
}

export interface Line {
  id: string
  price: { id: string }
  /** Of a plan, in an invoice. */
  period?: { start: number; end: number }
  [name: string]: unknown
}

/** What an account holds, as plain JSON. */
export interface Held {
  secretKey: string
  webhookSecret: string
  /** By their ids. */
  objects: Record<string, Thing>
  /** What was answered to an idempotency key. */
  answered: Record<string, { form: string; sessionId: string }>
  /** Prices that are paid once; every other one renews. */
  pricesOnce: string[]
}

/** One account of Stripe. */
export interface Account {
  held: Held
  /** An id that nothing has yet, behind what Stripe puts in front: `sub_`. */
  newId: (prefix: string) => string
  now: () => number
  /** Where a page is paid. */
  pageUrl: (sessionId: string) => string
}

export function add(account: Account, thing: Thing): string {
  account.held.objects[thing.id] = thing
  return thing.id
}

export function get({ held }: Account, id: string): Thing {
  const thing = held.objects[id]
  if (thing === undefined) throw new Error(`there is no ${id}`)
  return thing
}

export function change(account: Account, id: string, changes: Record<string, unknown>): void {
  account.held.objects[id] = { ...get(account, id), ...changes }
}

export function all({ held }: Account, object: string): Thing[] {
  return Object.values(held.objects).filter((one) => one.object === object)
}

/** Instants of Stripe are seconds. */
export function seconds(at: number): number {
  return Math.floor(at / 1000)
}
