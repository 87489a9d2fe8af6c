import { type MergeParticipant, segmentParticipant } from './customers/index.ts'
import { mergeAccounts, splitAccounts } from './entitlements/index.ts'
import { experimentParticipant } from './experiences/index.ts'
import { purchaseParticipant } from './purchases/index.ts'

/** What moves with customers that merge or split, in this order. */
export const participants: readonly MergeParticipant[] = [
  { name: 'accounts', merge: mergeAccounts, split: splitAccounts },
  purchaseParticipant,
  segmentParticipant,
  experimentParticipant,
]
