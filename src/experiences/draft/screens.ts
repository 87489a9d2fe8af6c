import { draftPlacementsMax, draftScreensMax, screenControlsMax, viewModelValuesMax } from '../../kernel/limits.ts'
import { responseKey } from './declared.ts'
import { rid } from './manifest.ts'
import { anything, bytes, either, list, map, object, pattern, type Shaped, tagged, text, that, word } from './shape.ts'
import { id, stepId } from './values.ts'

/** What a draft says of screens and of what they sell. */

const target = either((one) => one === null, word(null), stepId)
const named = pattern('sha256: and the hash of an uploaded file', /^sha256:[a-f0-9]{64}$/)
const screenId = that<string>(
  'an id of 1 to 128 characters and at most 256 bytes, without NUL',
  (one) =>
    typeof one === 'string' && one !== '' && one.length <= 128 && Buffer.byteLength(one) <= 256 && !one.includes('\0'),
)

export const screensShape = list(
  object(
    { id: screenId },
    {
      responseCaptures: list(responseKey, { max: 256 }),
      defaultViewModelName: id,
      defaultInstanceId: id,
      offer: object({
        placementIds: list(id, { min: 1, max: draftPlacementsMax }),
        onAlreadyEntitled: target,
        onAccessUnknown: target,
      }),
    },
  ),
  { max: draftScreensMax },
)
export type Screen = Shaped<typeof screensShape>[number]

export const placementsShape = list(
  object(
    { id: rid, productId: text({ max: 256 }) },
    {
      appStore: object({
        introEligibility: word('automatic', 'alwaysEligible', 'alwaysIneligible'),
        billingPlan: word('default', 'upFront', 'monthly'),
      }),
      googlePlay: object({ offerId: bytes(256) }),
    },
  ),
  { max: draftPlacementsMax },
)

export const viewModelValuesShape = list(
  object(
    { viewModelName: id, path: text({ min: 0, max: 65_536 }), value: anything },
    { instanceId: id, instanceName: id },
  ),
  { max: viewModelValuesMax },
)

const ownEvent = that<string>(
  'an event name of 1 to 256 bytes that does not begin with $',
  (one) => typeof one === 'string' && one !== '' && !one.startsWith('$') && Buffer.byteLength(one) <= 256,
)
const source = tagged('source', {
  ...{ literal: object({ value: anything }), invocation_value: object({}), component_id: object({}) },
  instance_id: object({}),
})
const item = tagged('type', {
  emit: object({ eventName: ownEvent }, { payload: map(source, { key: bytes(256), max: 256 }) }),
  response_set: object({ field: bytes(256), value: source }),
  response_unset: object({ field: bytes(256) }),
})
const behavior = tagged('kind', {
  script: object({}),
  declarative: object({ program: list(item, { min: 1, max: 64 }) }),
})
export const controlsShape = list(object({ actionId: id, behavior }), { max: screenControlsMax })
export const behaviorsShape = list(object({ screenId: id, controls: controlsShape }, { script: named }), {
  max: draftScreensMax,
})

/** By locale. */
export const renderShape = map(object({ manifest: named }), { key: text({ max: 64 }), max: 64 })
