import type { World } from './arbitrary.ts'

/**
 * The ledger a second time, slowly and by other means: every reset happens at its boundary, units are single tokens in
 * bags, costs are found by counting. Shares no code with what it checks, only the names of the terms.
 */
interface Bag {
  name: string
  place: number // 0 own, then the pools
  entity: string | null
  from: number
  until: number
  paid: number
  every: number // 0 for none; cycles begin with the bag
  full: number
  tokens: number[]
  unlimited: boolean
  rank: number
  born: number
  rolls: { max: number; periods: number } | null
  parent: Bag | null
}

export interface Answer {
  accepted: boolean
  code: string
  balance: number | null
  unlimited: boolean
  active: boolean
}

const never = 1e15

export class Model {
  readonly counters: Record<string, number> = {}
  readonly #bags: Bag[] = []
  readonly #world: World
  #now = 0

  constructor(world: World) {
    this.#world = world
    for (const [place, account] of [world.own, ...world.pools.map((pool) => pool.account)].entries()) {
      for (const grant of account.grants) {
        const bag: Bag = {
          name: String(grant.id),
          place,
          entity: grant.entityId,
          from: grant.effectiveAt,
          until: Math.min(grant.expiresAt ?? never, grant.revokedAt ?? never),
          paid: grant.paidUntil ?? never,
          every: grant.cycle && !grant.unlimited ? grant.cycle.count * 60_000 : 0,
          full: Number(grant.amount),
          tokens: [],
          unlimited: grant.unlimited,
          rank: grant.rank,
          born: grant.createdAt,
          rolls: grant.rollover && {
            max: Number(grant.rollover.max ?? never),
            periods: grant.rollover.periods ?? never,
          },
          parent: null,
        }
        if (!bag.unlimited) fill(bag, bag.full)
        this.#bags.push(bag)
      }
    }
  }

  consume(at: number, entity: string | null, mode: string, quantity: number): Answer {
    this.#advance(at)
    const key = String(entity)
    const used = this.counters[key] ?? 0
    const need = mode === 'consume' ? quantity : Math.max(0, quantity - used)
    const bags = this.#bags.filter((bag) => this.#isLive(bag) && (bag.entity === null || bag.entity === entity))
    if (bags.length === 0)
      return { accepted: false, code: 'access_inactive', balance: 0, unlimited: false, active: false }
    if (bags.some((bag) => bag.unlimited)) {
      this.#use(key, need)
      return { accepted: true, code: 'consumed', balance: null, unlimited: true, active: true }
    }
    const before = this.#count(bags)
    if (need > before) {
      return { accepted: false, code: 'insufficient_balance', balance: before, unlimited: false, active: before > 0 }
    }
    this.#spend(bags, need)
    this.#use(key, need)
    const balance = this.#count(bags)
    return { accepted: true, code: 'consumed', balance, unlimited: false, active: balance > 0 }
  }

  /** What each grant holds at `at`, by the name of the grant it came from and when it ends; empty ones are left out. */
  holdings(at: number): string[] {
    this.#advance(at)
    return this.#bags
      .filter((bag) => this.#isLive(bag) && bag.tokens.length > 0)
      .map((bag) => `${bag.name} until ${bag.until}: ${bag.tokens.length}`)
      .toSorted()
  }

  #use(key: string, units: number): void {
    if (units > 0) this.counters[key] = (this.counters[key] ?? 0) + units
  }

  #isLive(bag: Bag): boolean {
    return bag.from <= this.#now && this.#now < bag.until
  }

  /** Walks through every millisecond at which something resets. */
  #advance(to: number): void {
    for (;;) {
      const next = this.#bags
        .filter((bag) => bag.every > 0)
        .map((bag) => ({ bag, at: boundaryAfter(bag, this.#now) }))
        .filter(({ bag, at }) => at <= to && at < bag.until && at < bag.paid)
        .toSorted((a, b) => a.at - b.at)[0]
      if (!next) break
      // Everything that resets at this millisecond, then on.
      this.#now = next.at
      for (const bag of this.#bags.filter((each) => each.every > 0)) {
        const turns = (next.at - bag.from) % bag.every === 0 && next.at > bag.from
        if (turns && next.at < bag.until && next.at < bag.paid) this.#turn(bag)
      }
    }
    this.#now = to
  }

  #turn(bag: Bag): void {
    const left = bag.tokens.splice(0).length
    fill(bag, bag.full)
    if (bag.rolls === null) return
    const standing = this.#bags.filter((each) => each.parent === bag && this.#isLive(each))
    const room = bag.rolls.max - standing.reduce((sum, each) => sum + each.tokens.length, 0)
    const rolled = Math.min(left, room)
    if (rolled <= 0) return
    const endless = bag.rolls.periods >= never
    const old = standing.find((each) => endless && each.tokens.length > 0)
    if (old) {
      fill(old, rolled)
      return
    }
    const child = {
      ...bag,
      from: this.#now,
      paid: never,
      every: 0,
      tokens: [],
      born: this.#now,
      rolls: null,
      parent: bag,
    }
    child.name = `from ${bag.name}`
    child.until = endless ? never : this.#now + bag.rolls.periods * bag.every
    fill(child, rolled)
    this.#bags.push(child)
  }

  /** Units of the Feature, by trying one more until it does not fit. */
  #count(bags: Bag[]): number {
    const places = [...new Set(bags.map((bag) => bag.place))]
    return places.reduce((sum, place) => sum + this.#affordable(place, tokensIn(bags, place)), 0)
  }

  #affordable(place: number, tokens: number): number {
    let units = 0
    while (this.#price(place, units + 1) <= tokens) units++
    return units
  }

  /** The fewest tokens that pay for `units`. */
  #price(place: number, units: number): number {
    const pool = this.#world.pools[place - 1]
    if (!pool) return units * 10 ** this.#world.feature.scale
    let price = 0
    while (price * Number(pool.cost.per) < units * Number(pool.cost.credits) * 10 ** pool.feature.scale) price++
    return price
  }

  #spend(bags: Bag[], need: number): void {
    const holding = bags.filter((bag) => bag.tokens.length > 0)
    const lossOf = (place: number): string =>
      holding.flatMap((bag) => (bag.place === place ? [pad(this.#lostAt(bag))] : [])).toSorted()[0] ?? ''
    const pools = [...new Set(holding.map((bag) => bag.place))].filter((place) => place > 0)
    const sequence = [0, ...pools.toSorted((a, b) => (lossOf(a) + pad(a) < lossOf(b) + pad(b) ? -1 : 1))]
    let short = need
    for (const place of sequence) {
      const units = Math.min(short, this.#affordable(place, tokensIn(bags, place)))
      for (let token = this.#price(place, units); token > 0; token--) this.#first(bags, place).tokens.pop()
      short -= units
    }
    if (short !== 0) throw new Error('the model lost count')
  }

  #first(bags: Bag[], place: number): Bag {
    const [first] = bags
      .filter((bag) => bag.place === place && bag.tokens.length > 0)
      .toSorted((a, b) => (this.#rankOf(a) < this.#rankOf(b) ? -1 : 1))
    if (!first) throw new Error('the model has nothing left')
    return first
  }

  /** Sorts as text: whose, when lost, rank, age, number. */
  #rankOf(bag: Bag): string {
    const whose = bag.entity === null ? 1 : 0
    const number = bag.parent ? `1 ${bag.parent.name}` : `0 ${bag.name}`
    return [whose, pad(this.#lostAt(bag)), bag.rank, pad(bag.born), number].join(' ')
  }

  #lostAt(bag: Bag): number {
    const reset = bag.every > 0 ? boundaryAfter(bag, this.#now) : never
    return reset < bag.until && reset < bag.paid ? reset : bag.until
  }
}

function fill(bag: Bag, tokens: number): void {
  for (let i = 0; i < tokens; i++) bag.tokens.push(i)
}

function tokensIn(bags: Bag[], place: number): number {
  return bags.reduce((sum, bag) => sum + (bag.place === place ? bag.tokens.length : 0), 0)
}

/** The first reset after `t`, found by stepping. */
function boundaryAfter(bag: Bag, t: number): number {
  let at = bag.from + bag.every
  while (at <= t) at += bag.every
  return at
}

function pad(n: number): string {
  return String(n).padStart(16, '0')
}
