import { type MergeParticipant, segmentParticipant } from './customers/index.ts'
import { mergeAccounts, splitAccounts } from './entitlements/index.ts'
import { experimentParticipant } from './experiences/index.ts'
import { type ApplyServices, createJourneyParticipant } from './journeys/index.ts'
import type { Clock } from './kernel/clock.ts'
import { purchaseParticipant } from './purchases/index.ts'

/** What moves with customers that merge or split, and ends with those that are deleted, in this order. */
export function participantsOf(clock: Clock, services: ApplyServices): readonly MergeParticipant[] {
  return [
    { name: 'accounts', merge: mergeAccounts, split: splitAccounts },
    purchaseParticipant,
    segmentParticipant,
    createJourneyParticipant({ clock, services }),
    experimentParticipant,
  ]
}
