import type { DeliveredRelease } from '../experiences/index.ts'
import { profileArmsMax, profileBytesMax } from '../kernel/limits.ts'
import { type Arm, armJson, compareArms } from './arm.ts'
import { restSizeOf, type Told } from './body.ts'
import { type Common, commonOf } from './common.ts'
import type { ContinueReason } from './continue-arm.ts'
import { type Declared, factsOf } from './facts.ts'
import type { NewReason } from './new-arm.ts'
import type { ProfileInput } from './types.ts'

export type LeftOut = Extract<ContinueReason, NewReason> | 'input_missing'

/** What a profile tells of its arms, and what has to be known or stored before it is told. */
export interface Admitted extends Told {
  /** Up to and including the facts. */
  text: string
  common: Common
  /** No arm names anybody. */
  isCommon: boolean
  /** Experiments that give the customer a variant with it. */
  fresh: readonly string[]
  /** What its facts are. */
  declared: Declared
  missing: { appId: string; sha256: string }[]
  left: Map<Arm, LeftOut>
}

interface Offer {
  arm: Arm
  /** Undefined: not read yet. */
  release: DeliveredRelease | undefined
  json: string
}

/**
 * The most of the arms that fit. Whole arms are left out from the end, new journeys before those that go on. An arm whose release
 * was not read yet counts by its size, so that nothing is read that cannot fit.
 */
export function admit(input: ProfileInput, sorted: readonly Arm[], head: string): Admitted {
  const left = new Map<Arm, LeftOut>()
  const turns = inTurn(sorted)
  const offers: Offer[] = []
  for (const arm of turns) {
    const offer = offers.length < profileArmsMax ? offerOf(input, arm) : 'limit_arms'
    if (typeof offer === 'string') left.set(arm, offer)
    else offers.push(offer)
  }
  const told = tell(input, head, offers)
  if (told.bytes <= profileBytesMax) return { ...told, missing: missingOf(input, offers), left }
  const count = mostOf(offers.length, (n) => tell(input, head, offers.slice(0, n)).bytes <= profileBytesMax)
  const over = offers[count]?.arm
  for (const arm of over ? turns.slice(turns.indexOf(over)) : []) left.set(arm, 'limit_bytes')
  // The first that is too much is read all the same: if it does not verify, the next ones may fit.
  const missing = missingOf(input, offers.slice(0, count + 1))
  return { ...tell(input, head, offers.slice(0, count)), missing, left }
}

function inTurn(sorted: readonly Arm[]): readonly Arm[] {
  if (sorted.every(({ binding }) => binding.type === 'new')) return sorted
  const ofType = (type: Arm['binding']['type']) => sorted.filter(({ binding }) => binding.type === type)
  return [...ofType('continue'), ...ofType('new')]
}

function offerOf({ delivery, app }: ProfileInput, arm: Arm): Offer | LeftOut {
  const release = delivery.release(app.appId, arm.release.sha256)
  if (release === null) return 'release_unverified'
  const json = release ? armJson(arm, release) : ''
  return json === null ? 'input_missing' : { arm, release, json }
}

function missingOf({ app }: ProfileInput, offers: readonly Offer[]): Admitted['missing'] {
  return offers.flatMap(({ arm, release }) => (release ? [] : { appId: app.appId, sha256: arm.release.sha256 }))
}

/** In the order of arms, whoever's turn it was. `bytes` has the releases in it that were not read yet. */
function tell(input: ProfileInput, head: string, offers: readonly Offer[]) {
  const arms: string[] = []
  const releases: DeliveredRelease[] = []
  let unreadBytes = 0
  for (const { arm, release, json } of inOrder(offers)) {
    if (release) {
      arms.push(json)
      releases.push(release)
    } else unreadBytes += arm.release.size
  }
  const common = commonOf(input.delivery, releases)
  const { declared } = common
  const { json, fresh } = factsOf(input, declared)
  const told = { text: head + json, arms, releases: common.releases }
  const isCommon = offers.every(({ arm }) => arm.binding.type === 'new')
  const bytes = Buffer.byteLength(told.text) + restSizeOf(told) + unreadBytes
  return { ...told, common, isCommon, fresh, declared, bytes }
}

function inOrder(offers: readonly Offer[]): readonly Offer[] {
  return offers.every(({ arm }) => arm.binding.type === 'new')
    ? offers
    : offers.toSorted((a, b) => compareArms(a.arm, b.arm))
}

/** The largest count that fits, where fewer always do. */
function mostOf(all: number, fits: (count: number) => boolean): number {
  let [most, tooMany] = [0, all]
  while (tooMany - most > 1) {
    const middle = (most + tooMany) >> 1
    if (fits(middle)) most = middle
    else tooMany = middle
  }
  return most
}
